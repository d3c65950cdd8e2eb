// Hop 5: the body, to the exact scope. Fetching changes nothing.

import type { FetchedMessage } from '../protocol/delivery.ts';
import { isRefusal, type Result } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import type { FetchRequest } from '../protocol/requests.ts';
import type { Desk } from './desk.ts';
import { findMessage } from './find.ts';
import { peerNames } from './peer-names.ts';

export function fetchMessage(
  desk: Pick<Desk, 'store' | 'account'>,
  request: FetchRequest,
): Result<FetchedMessage> {
  const named = peerNames(desk);
  return desk.store.read((tx) => {
    const found = findMessage(tx, request, { targetKind: request.target_kind ?? 'principal' });
    if (isRefusal(found)) return found;
    const { json, sha256 } = tx.messages.payload(request.message_id);
    const { tombstoned_at } = found;
    return {
      ...named(found.message),
      payload: JSON.parse(json) as Json,
      payload_sha256: sha256,
      ...(tombstoned_at !== undefined && { payload_tombstoned_at: tombstoned_at }),
      untrusted: true,
    };
  });
}
