// A stranger, a peer or another machine of this account asks to pair. A stranger's request waits for the operator and does nothing else; a peer's says anew where it
// is reached and is confirmed again, which repairs a lost confirmation and lets two find each other who were added by hand.

import type { Tx } from '../../ports/store.ts';
import { isRefusal } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { checkClaimedName } from '../../protocol/names/petname.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';
import { putConfirmation, routeOf } from '../control.ts';
import { expire, labelOf, type PairingGround } from './ground.ts';

export type PairRequestRecord = Extract<WireRecord, { type: 'pair_request' }>;

/** `later`: nothing could be decided now, and the record must come again. */
export async function takeRequest(
  ground: PairingGround,
  record: PairRequestRecord,
): Promise<'done' | 'later'> {
  const identity = ground.account.identity();
  const policy = ground.account.policy();
  if (isRefusal(identity) || isRefusal(policy)) return 'later';
  const { from, fields } = record;
  const isOwn = from === identity.key;
  // From this very machine.
  if (isOwn && ground.store.read((tx) => tx.places.get()?.device) === fields.from_device) return 'done';
  if (!isOwn && policy.of(from) === undefined) {
    if (checkClaimedName(fields.name) !== undefined) return 'done';
    const put = await ground.store.write((tx) => putRequest(tx, ground, record));
    if (put) ground.wake.touch();
    return 'done';
  }
  const name = labelOf(ground, identity);
  const confirmed = await ground.store.write((tx) => confirmAgain(tx, ground, record, name));
  if (confirmed) ground.wake.touch();
  return confirmed ? 'done' : 'later';
}

/** @returns whether it waits for the operator now */
function putRequest(tx: Tx, { clock }: PairingGround, { from, id, fields }: PairRequestRecord): boolean {
  const nowMs = clock.nowMs();
  expire(tx, nowMs);
  const { requests, notices } = tx.pairing;
  const known = requests.of(from);
  if (known === undefined && requests.count() >= limits.pairRequestsMax) return false;
  requests.put({
    ...routeOf(fields),
    peer_key: from,
    request_id: id,
    name: fields.name,
    arrived_ms: nowMs,
  });
  // Who asks again rings nobody again.
  if (known === undefined)
    notices.add({
      sessions: notices.audience(nowMs),
      kind: 'request',
      peer_key: from,
      name: null,
      created_ms: nowMs,
    });
  return true;
}

/** No policy changes and nobody is rung. */
function confirmAgain(
  tx: Tx,
  ground: PairingGround,
  { from, id, fields, time_ms }: PairRequestRecord,
  name: string,
): boolean {
  const { clock, random } = ground;
  const nowMs = clock.nowMs();
  const route = routeOf(fields);
  tx.devices.heard({ peer_key: from, device: route.device, heard_ms: Math.min(time_ms, nowMs), route });
  // One that came before the operator added its key by hand.
  tx.pairing.requests.remove(from);
  tx.pairing.notices.removeOf(from);
  return putConfirmation(tx, { random, nowMs }, { ...route, peer_key: from, request_id: id }, name);
}
