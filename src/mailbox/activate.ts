// Hop 7: what became of waking the recipient's session, as the caller says.

import { isRefusal, type Result } from '../protocol/errors.ts';
import type { MessageReceipt } from '../protocol/receipts.ts';
import type { ActivationRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { findMessage } from './find.ts';
import { record, recorded } from './record.ts';

export async function activate(
  desk: Desk,
  request: ActivationRequest,
  caller: Caller,
): Promise<Result<MessageReceipt>> {
  const { value, idempotency_key, detail } = request;
  return recorded(desk, (tx) => {
    const found = findMessage(tx, request);
    if (isRefusal(found)) return found;
    return record(tx, desk, found.message, caller, {
      kind: 'activation',
      value,
      idempotency_key,
      ...(detail !== undefined && { detail }),
    });
  });
}
