// What runs of real hosts do not show, said at the end of each.

export const uncovered = [
  'What these runs do not cover:',
  '- admission of channels by the vendor, which answers nothing: what is tested is that bytes are written',
  '- screens on which a person reviews hooks, but for the one scenario of Codex, and other interactive review',
  '- production models: the models are scripts on loopback',
  '- Desktop and cloud products',
  '- macOS and Windows',
].join('\n');

/** As vitest calls it when all have run. */
export function teardown(): void {
  console.log(`\n${uncovered}`);
}
