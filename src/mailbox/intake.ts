// Hop 6: the receipt that ends waiting and with it every reminder. Only what really happened is recorded.

import { isRefusal, type Result } from '../protocol/errors.ts';
import type { MessageReceipt } from '../protocol/receipts.ts';
import type { IntakeRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { findMessage } from './find.ts';
import { checkMeant, record, recorded } from './record.ts';

export async function intake(
  desk: Desk,
  request: IntakeRequest,
  caller: Caller,
): Promise<Result<MessageReceipt>> {
  return recorded(desk, (tx) => {
    const found = findMessage(tx, request);
    if (isRefusal(found)) return found;
    return (
      checkMeant(tx, found.message, caller) ??
      record(tx, desk, found.message, caller, {
        kind: 'intake',
        value: request.state,
        idempotency_key: request.idempotency_key,
      })
    );
  });
}
