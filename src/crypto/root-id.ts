import { createHash } from 'node:crypto';
import { uuidText } from '../protocol/wire/bytes.ts';

/** What a chain of answers is called on the wire that began with a message of this store: its own id stays here. */
export function rootOf(messageId: string): string {
  const digest = createHash('sha256').update(`postbell-1 root\0${messageId}`).digest();
  return uuidText(digest.subarray(0, 16));
}
