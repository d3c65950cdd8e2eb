// How much mail one answer holds: hosts drop a connection over an answer that is too long, with all that was in it.

import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';

/** The first of the messages, at least one, as many as fit, each with its payload. */
export function page<T>(tx: Tx, rows: readonly T[], storedOf: (row: T) => StoredMessage): [T, Json][] {
  const fitting: [T, Json][] = [];
  let characters = 0;
  for (const row of rows) {
    const { json } = tx.messages.payload(storedOf(row).message.message_id);
    characters += json.length;
    if (characters > limits.answerPayloadCharactersMax && fitting.length > 0) break;
    fitting.push([row, JSON.parse(json) as Json]);
  }
  return fitting;
}
