// The other side has accepted. It counts only as the answer to a request that was made here, by that key and with that id; then the
// key is a peer under the name that this operator typed. Of a peer, an acceptance says only where it is reached.

import type { Tx } from '../../ports/store.ts';
import { isRefusal, type Refusal } from '../../protocol/errors.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';
import { putConfirmation, routeOf } from '../control.ts';
import { expire, labelOf, type PairingGround } from './ground.ts';

export type PairAcceptRecord = Extract<WireRecord, { type: 'pair_accept' }>;

export async function complete(ground: PairingGround, record: PairAcceptRecord): Promise<'done' | 'later'> {
  const identity = ground.account.identity();
  const policy = ground.account.policy();
  if (isRefusal(identity) || isRefusal(policy)) return 'later';
  const name = labelOf(ground, identity);
  const { from, fields } = record;
  if (from !== identity.key && policy.of(from) === undefined) {
    const asked = await ground.store.write((tx) => {
      expire(tx, ground.clock.nowMs());
      return tx.pairing.asked.of(from);
    });
    if (asked === undefined || asked.request_id !== fields.request_id) return 'done';
    const peer = await ground.policyFile.add({ name: asked.name, key: from }, () => isAsked(ground, record));
    // Withdrawn meanwhile.
    if (peer === undefined) return 'done';
    if (isRefusal(peer)) return refused(ground, record, { taken: asked.name, own: name }, peer);
  }
  await ground.store.write((tx) => settle(tx, ground, record, name));
  ground.wake.touch();
  return 'done';
}

const isAsked = ({ store }: PairingGround, { from, fields }: PairAcceptRecord): boolean =>
  store.read((tx) => tx.pairing.asked.of(from)?.request_id === fields.request_id);

/** The name was taken since: the operator is told, and nothing is overwritten. Other refusals may pass. */
async function refused(
  ground: PairingGround,
  record: PairAcceptRecord,
  { taken, own }: { taken: string; own: string },
  refusal: Refusal,
): Promise<'done' | 'later'> {
  if (refusal.code !== 'conflict') return 'later';
  // Or somebody made it a peer this very moment.
  const policy = ground.account.policy();
  if (isRefusal(policy)) return 'later';
  await ground.store.write((tx) => {
    if (policy.of(record.from) !== undefined) return settle(tx, ground, record, own);
    const nowMs = ground.clock.nowMs();
    retire(tx, record.from);
    tx.pairing.notices.add({
      sessions: tx.pairing.notices.audience(nowMs),
      kind: 'conflict',
      peer_key: record.from,
      name: taken,
      created_ms: nowMs,
    });
  });
  ground.wake.touch();
  return 'done';
}

function settle(tx: Tx, ground: PairingGround, record: PairAcceptRecord, ownName: string): void {
  const { clock, random } = ground;
  const { from, fields, time_ms } = record;
  const nowMs = clock.nowMs();
  const { device, ...route } = routeOf(fields);
  tx.devices.heard({ peer_key: from, device, heard_ms: Math.min(time_ms, nowMs), route });
  // A peer may answer what nobody asked, or what was asked twice: only the request that it names is over.
  if (tx.pairing.asked.of(from)?.request_id === fields.request_id) retire(tx, from);
  // That another machine of this account is asked is noted by its record alone.
  if (tx.pairing.asked.of(from) === undefined) tx.pairing.jobs.removeTo(from, 'pair_request');
  // Both asked each other: the other one's request is a peer's now, and is answered as such.
  const pending = tx.pairing.requests.of(from);
  if (pending !== undefined && !putConfirmation(tx, { random, nowMs }, pending, ownName)) return;
  tx.pairing.requests.remove(from);
  tx.pairing.notices.removeOf(from);
}

function retire(tx: Tx, key: string): void {
  tx.pairing.asked.remove(key);
  tx.pairing.jobs.removeTo(key, 'pair_request');
}
