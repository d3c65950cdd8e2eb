// What keeps two agents from waking each other for ever. A message that another caused is one hop further from a person;
// too many hops are refused, and an answer that says nothing wakes nobody.

import type { Json } from './json.ts';
import type { MessageStatus } from './message.ts';

const acknowledgements = new Set([
  'ok',
  'okay',
  'ack',
  'acknowledged',
  'thanks',
  'thank you',
  'got it',
  'noted',
  'no_reply',
  '+1',
]);

/** A lone thumbs-up or check mark, in any skin tone or presentation. */
const sign = /^(?:\u{1f44d}[\u{1f3fb}-\u{1f3ff}]?|[\u2713\u2714\u2705\u2611])\ufe0f?$/u;

/** Whether the text is blank, or a reply that only acknowledges. */
export function needsNoAnswer(message: {
  payload: Json;
  status?: MessageStatus;
  reply_to?: string;
}): boolean {
  if (typeof message.payload !== 'string' || message.status !== undefined) return false;
  const text = message.payload.trim();
  if (text === '') return true;
  if (message.reply_to === undefined) return false;
  return (
    acknowledgements.has(without(/[\s.!?,;:…]/, text).toLowerCase()) || sign.test(without(/[\s.!]/, text))
  );
}

/** Without such characters at its end; in linear time, which a pattern with an anchor is not. */
function without(mark: RegExp, text: string): string {
  let end = text.length;
  while (end > 0 && mark.test(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
}
