// Whether a prompt is a person's own: hosts fire the same event for what they or other programs put into a turn, each in a wrapper of
// its own, and a notice of this store may be queued as a prompt.

import { noticesNamedIn } from './notices.ts';

/** How what a host made itself begins (measured: rewakes, channel messages, other sessions of the host, background tasks). */
const wrappers: readonly RegExp[] = [
  /^<(?:system-reminder|task-notification|channel|cross-session-message|teammate-message)\b/,
  /^Another Claude session sent a message:/,
  /^\[SYSTEM NOTIFICATION - NOT USER INPUT\]/,
  /^Stop hook (?:feedback|blocking error)\b/,
  /^\[Postbell (?:inbox notice|listener renewal|pairing notice)\]/,
];

export function isHumanPrompt(text: string): boolean {
  const begun = text.trimStart();
  return (
    begun !== '' && !wrappers.some((wrapper) => wrapper.test(begun)) && noticesNamedIn(begun).length === 0
  );
}
