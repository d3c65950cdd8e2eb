// Hop 7: what the recipient says becomes of the work. Its own claim, in order, each under its own key.

import { isRefusal, type Result } from '../protocol/errors.ts';
import type { MessageReceipt } from '../protocol/receipts.ts';
import type { DispositionRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { findMessage } from './find.ts';
import { checkMeant, record, recorded } from './record.ts';

export async function dispose(
  desk: Desk,
  request: DispositionRequest,
  caller: Caller,
): Promise<Result<MessageReceipt>> {
  const { value, idempotency_key, detail } = request;
  return recorded(desk, (tx) => {
    const found = findMessage(tx, request);
    if (isRefusal(found)) return found;
    return (
      checkMeant(tx, found.message, caller) ??
      record(tx, desk, found.message, caller, {
        kind: 'disposition',
        value,
        idempotency_key,
        ...(detail !== undefined && { detail }),
      })
    );
  });
}
