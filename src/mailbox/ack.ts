// A bare acknowledgement: a fact of its own, which ends no waiting.

import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { MessageReceipt } from '../protocol/receipts.ts';
import type { AckRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { findMessage } from './find.ts';
import { record, recorded } from './record.ts';

export async function ack(desk: Desk, request: AckRequest, caller: Caller): Promise<Result<MessageReceipt>> {
  const { host_accept_id, idempotency_key } = request;
  return recorded(desk, (tx) => {
    const found = findMessage(tx, request);
    if (isRefusal(found)) return found;
    const accepted = tx.attempts.acceptanceOf(found.message.delivery_id);
    if (host_accept_id !== undefined && accepted?.host_accept_id !== host_accept_id)
      return new Refusal('not_available', 'host_accept_id does not name an acceptance of this message', {
        field: 'host_accept_id',
      });
    return record(tx, desk, found.message, caller, {
      kind: 'ack',
      value: 'acknowledged',
      idempotency_key,
      ...(host_accept_id !== undefined && { host_accept_id }),
    });
  });
}
