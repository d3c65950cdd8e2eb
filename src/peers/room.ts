// What one peer may leave in one inbox: so many records, and so many bytes. Counted where the newcomer is stored, in its transaction,
// after what may be pruned was.

import type { Tx } from '../ports/store.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { type Message, type StoredPayload, sessionMeant } from '../protocol/message.ts';

export interface Room {
  owner: string;
  bytes: number;
  nearlyFull: boolean;
}

/** Whether the inbox takes one more record of this peer, after what may be pruned was. */
export function roomFor(
  tx: Tx,
  message: Message,
  payload: StoredPayload,
  from: string,
  nowMs: number,
): Room | 'full' {
  const owner = ownerOf(tx, from, message);
  const beforeMs = nowMs - limits.signedForMs;
  const bytes = utf8Bytes(JSON.stringify({ ...message, payload: 0 })) - 1 + utf8Bytes(payload.json);
  const at = new Date(nowMs).toISOString();
  tx.linkRecords.prune(from, owner, beforeMs, at);
  const counted = tx.linkRecords.counted(from, owner, beforeMs, at);
  const count = counted.count + 1;
  const total = counted.bytes + bytes;
  if (count > limits.linkRecordsMax || total > limits.linkRecordBytesMax) return 'full';
  const nearlyFull = count >= nearly(limits.linkRecordsMax) || total >= nearly(limits.linkRecordBytesMax);
  return { owner, bytes, nearlyFull };
}

const nearly = (most: number): number => Math.ceil(most * 0.8);

/** Of all names that were never seen here, so that invented ones multiply nothing. */
const unseen = 'unseen';

/** Whose bound it counts for. What came while the owner was unseen counts for it from its first message after that. */
function ownerOf(tx: Tx, peerKey: string, message: Message): string {
  const { project, recipient } = message;
  const session = sessionMeant(message);
  if (session === undefined) {
    if (tx.sessions.checkpoint(project, recipient) === undefined) return unseen;
    const owner = JSON.stringify(['principal', project, recipient]);
    tx.linkRecords.adopt(peerKey, { from: unseen, owner }, { project, principal: recipient });
    return owner;
  }
  const sessions = tx.identity.chain(session);
  if (!tx.sessions.everRegistered(sessions)) return unseen;
  const owner = JSON.stringify(['session', sessions[0]]);
  tx.linkRecords.adopt(peerKey, { from: unseen, owner }, { sessions });
  return owner;
}
