// The operator admits a stranger that asked. The order keeps trust and its confirmation together: room for the confirmation first,
// then the policy, then the confirmation itself. Whatever is cut off in between, doing it again completes it.

import { fingerprint } from '../../crypto/fingerprint.ts';
import type { PairRequestRow } from '../../ports/pairing.ts';
import type { Tx } from '../../ports/store.ts';
import { isRefusal, type Refusal, type Result } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { confirmationOf, newRecordId, putJob, roomFor } from '../control.ts';
import { ownPlace } from '../place.ts';
import { claimedName, expire, halfDone, type PairingGround, requestNamed } from './ground.ts';

export interface AcceptRequest {
  /** Full key or full fingerprint of a pending request. */
  key: string;
  /** How it is to be called here. */
  name: string;
}

export interface AcceptAnswer {
  name: string;
  key: string;
  fingerprint: string;
  claimed_name: string;
  /** It goes out by itself; the other side holds this key as a peer once it has arrived. */
  confirmation: 'queued';
}

export async function accept(ground: PairingGround, request: AcceptRequest): Promise<Result<AcceptAnswer>> {
  const identity = ground.account.identity();
  if (isRefusal(identity)) return identity;
  const own = claimedName(ground, identity);
  if (isRefusal(own)) return own;
  const pending = await ground.store.write((tx) => reserve(tx, ground, request.key, own));
  if (isRefusal(pending)) return pending;
  const { peer_key, name: claimed_name } = pending;
  const peer = await ground.policyFile.add({ name: request.name, key: peer_key });
  if (isRefusal(peer)) {
    await ground.store.write((tx) => release(tx, pending));
    return peer;
  }
  try {
    await ground.store.write((tx) => confirm(tx, ground, pending, own));
  } catch (error) {
    throw halfDone(
      error,
      `${quoted(peer.name)} is a peer here now, but the confirmation is not saved; accept it again to send it`,
    );
  }
  ground.wake.touch();
  return {
    name: peer.name,
    key: peer_key,
    fingerprint: fingerprint(peer_key),
    claimed_name,
    confirmation: 'queued',
  };
}

function reserve(
  tx: Tx,
  { clock, random }: PairingGround,
  key: string,
  name: string,
): Result<PairRequestRow> {
  const nowMs = clock.nowMs();
  expire(tx, nowMs);
  const pending = requestNamed(tx, key);
  if (isRefusal(pending)) return pending;
  const job = confirmationOf(pending, newRecordId(random), name);
  const full: Refusal | undefined = roomFor(tx, nowMs, job);
  if (full !== undefined) return full;
  putJob(tx, { random, nowMs, reserved: true }, job);
  return pending;
}

/** Only what is reserved: nothing of it was sent. */
function release(tx: Tx, { peer_key, device }: PairRequestRow): void {
  const job = tx.pairing.jobs.of('pair_accept', peer_key, device);
  if (job?.next_ms === null) tx.pairing.jobs.remove(job.seq);
}

/** The request may have been repeated meanwhile: its newest form is the one that is answered. */
function confirm(tx: Tx, { clock, random }: PairingGround, seen: PairRequestRow, name: string): void {
  const nowMs = clock.nowMs();
  const { requests, notices, asked, jobs } = tx.pairing;
  const pending = requests.of(seen.peer_key) ?? seen;
  const { peer_key, device, relays, suites, arrived_ms } = pending;
  ownPlace(tx, random);
  release(tx, seen);
  putJob(tx, { random, nowMs }, confirmationOf(pending, newRecordId(random), name));
  tx.devices.heard({ peer_key, device, heard_ms: arrived_ms, route: { relays, suites } });
  requests.remove(peer_key);
  notices.removeOf(peer_key);
  // Both asked each other: what was asked from here is answered by this.
  asked.remove(peer_key);
  jobs.removeTo(peer_key, 'pair_request');
}
