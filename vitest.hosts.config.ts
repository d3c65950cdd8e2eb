import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

const leftOut = [
  'harness',
  'loopback',
  'speed/*',
  'claude-code/{states,storm,listener,recipient,gate,channel,journey,print}',
  'codex/{release,managed,window,doctor,identity,life}',
  // Half a gigabyte, which is not installed everywhere.
  'acp/plugin',
  'truth/*',
];

/** Runs of real agent hosts against a model server on loopback: `node tools/hosts.mjs` installs the hosts. */
export default defineConfig({
  define: { __POSTBELL_VERSION__: JSON.stringify('0.0.0') },
  // Some tests move the clock of a use case over the real store.
  ...(base.plugins && { plugins: base.plugins }),
  test: {
    include: ['test/hosts/**/*.test.ts'],
    // Where time is short, what the rest of the suite shows in another way; `.ci/run` names it.
    exclude: process.env.CI ? leftOut.map((file) => `test/hosts/${file}.test.ts`) : [],
    globalSetup: ['test/hosts/uncovered.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // A host starts many processes: two side by side starve one another, and timings mean nothing.
    fileParallelism: false,
  },
});
