// Cancelling a task: a message like any other, whose key makes a repeat send nothing.

import { sha256Hex } from '../crypto/hash.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import { canonicalJson } from '../protocol/json.ts';
import type { CancelRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { principalsOf } from './inbox.ts';
import { type SendAnswer, send } from './send.ts';

export async function cancelTask(
  desk: Desk,
  request: CancelRequest,
  caller: Caller,
): Promise<Result<SendAnswer>> {
  const { project, recipient, task_id, target_kind, peer, reason: payload = 'canceled' } = request;
  const sender = desk.store.read((tx) => senderOf(tx, project, caller));
  if (sender === undefined)
    return new Refusal('invalid_request', 'a caller without a session has no principal to cancel as');
  return send(
    desk,
    {
      project,
      sender,
      recipient,
      payload,
      task_id,
      status: 'canceled',
      idempotency_key: `cancel:${sha256Hex(canonicalJson([recipient, target_kind ?? 'principal', task_id, payload, ...(peer === undefined ? [] : [peer])]))}`,
      ...(target_kind !== undefined && { target_kind }),
      ...(peer !== undefined && { peer }),
    },
    caller,
  );
}

function senderOf(
  tx: Parameters<typeof principalsOf>[0],
  project: string,
  caller: Caller,
): string | undefined {
  if (caller.session === undefined) return caller.principal;
  return principalsOf(tx, project, tx.identity.chain(caller.session), caller)[0];
}
