// Hop 5: the body, to the exact scope. Fetching changes nothing.

import type { FetchedMessage } from '../protocol/delivery.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import type { FetchRequest } from '../protocol/requests.ts';
import type { Desk } from './desk.ts';
import { findMessage } from './find.ts';

export function fetchMessage(desk: Pick<Desk, 'store'>, request: FetchRequest): Result<FetchedMessage> {
  return desk.store.read((tx) => {
    const found = findMessage(tx, request, request.target_kind ?? 'principal');
    if (isRefusal(found)) return found;
    const { json, sha256 } = tx.messages.payload(request.message_id);
    return { ...found.message, payload: JSON.parse(json) as Json, payload_sha256: sha256, untrusted: true };
  });
}
