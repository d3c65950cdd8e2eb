// The operator takes a peer's admission back. From the policy's change on nothing more of it is let in; what was on its way to it
// ends, and its history stays.

import type { Tx } from '../../ports/store.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { foldPetname } from '../../protocol/names/petname.ts';
import type { Policy, TrustedPeer } from '../../protocol/policy.ts';
import { putRoutes } from '../control.ts';
import { replaceQueue } from '../place.ts';
import { halfDone, type PairingGround } from './ground.ts';

export interface RemoveRequest {
  /** Petname in any case, or exact key; also of one that was asked and has not answered. */
  name: string;
  /** Also leave the queue that it knows, and tell the other peers of the new one. */
  rotate?: boolean;
}

export interface RemoveAnswer {
  name: string;
  key: string;
  /** The new device id, where the queue was left. */
  device?: string;
}

export async function remove(
  ground: PairingGround,
  { name, rotate = false }: RemoveRequest,
): Promise<Result<RemoveAnswer>> {
  const identity = ground.account.identity();
  if (rotate && isRefusal(identity)) return identity;
  const policy = ground.account.policy();
  if (isRefusal(policy)) return policy;
  const peer = peerNamed(policy, name) ?? leftOver(ground, name.trim());
  if (isRefusal(peer)) return peer;
  // First: an answer that comes now adds nobody any more, or adds before the next line takes it back.
  if (ground.store.read((tx) => tx.pairing.asked.of(peer.key)) !== undefined)
    await ground.store.write((tx) => withdraw(tx, peer.key));
  const removed = await ground.policyFile.remove(peer.key);
  if (isRefusal(removed)) return removed;
  const others = policy.peers.map(({ key }) => key).filter((key) => key !== peer.key);
  const own = isRefusal(identity) ? undefined : identity.key;
  try {
    const device = await ground.store.write((tx) => {
      forget(tx, ground, peer.key);
      return rotate && own !== undefined ? leaveQueue(tx, ground, own, [...others, own]) : undefined;
    });
    ground.wake.touch();
    return { name: peer.name, key: peer.key, ...(device !== undefined && { device }) };
  } catch (error) {
    throw halfDone(
      error,
      `${quoted(peer.name)} is no peer any more, but not all of it is cleared away; remove ${peer.key} to do so`,
    );
  }
}

/** By petname in any case, or by exact key; both may be meant where somebody is named like a key. */
function peerNamed(policy: Policy, text: string): Result<TrustedPeer> | undefined {
  const named = policy.named(text.trim());
  const keyed = policy.of(text.trim());
  if (named !== undefined && keyed !== undefined && named !== keyed)
    return new Refusal(
      'ambiguous_peer',
      `${quoted(text)} is one peer\u2019s name and another one\u2019s key`,
      { field: 'name' },
    );
  return named ?? keyed;
}

/**
 * One that was asked and has not answered: the request is withdrawn. Or a key whose removal was cut off, so that it is no peer any
 * more and something of it is still here.
 */
function leftOver({ store }: PairingGround, text: string): Result<{ name: string; key: string }> {
  return store.read((tx) => {
    const asked = tx.pairing.asked
      .all()
      .find(({ name, peer_key }) => peer_key === text || foldPetname(name) === foldPetname(text));
    if (asked !== undefined) return { name: asked.name, key: asked.peer_key };
    const isHere =
      tx.devices.of(text).length > 0 || tx.pairing.jobs.all().some(({ peer_key }) => peer_key === text);
    return isHere
      ? { name: text, key: text }
      : new Refusal('unknown_peer', `no peer is called ${quoted(text)}`, { field: 'name' });
  });
}

function forget(tx: Tx, ground: PairingGround, key: string): void {
  ground.endOutbox(tx, key);
  tx.devices.forget(key);
  withdraw(tx, key);
  tx.pairing.jobs.removeTo(key);
  tx.pairing.notices.removeOf(key);
}

/** Nobody of that key is asked any more. */
function withdraw(tx: Tx, key: string): void {
  tx.pairing.asked.remove(key);
  tx.pairing.jobs.removeTo(key, 'pair_request');
}

function leaveQueue(tx: Tx, { clock, random }: PairingGround, key: string, tell: readonly string[]): string {
  const nowMs = clock.nowMs();
  const { device } = replaceQueue(tx, { random, key, of: 'device', at: new Date(nowMs).toISOString() });
  putRoutes(tx, { random, nowMs }, tell);
  return device;
}
