// Starts a pairing: the operator has the address of another identity and says under which name it is to be known here. It is a peer
// once its own operator has accepted, and not before.

import { isUsableKey } from '../../crypto/ed25519.ts';
import { fingerprint, pairCode } from '../../crypto/fingerprint.ts';
import { knownKeyBytes } from '../../crypto/key-text.ts';
import type { Tx } from '../../ports/store.ts';
import { type Address, readAddress } from '../../protocol/address.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { foldPetname, ownName } from '../../protocol/names/petname.ts';
import type { Policy } from '../../protocol/policy.ts';
import { petnameFault } from '../../protocol/policy-text.ts';
import { type NewJob, newRecordId, putJob, roomFor } from '../control.ts';
import { ownPlace } from '../place.ts';
import { claimedName, expire, type PairingGround } from './ground.ts';

export interface AskRequest {
  /** An address, as `identity show` prints it. */
  target: string;
  /** The petname; may be left out for a key that is a peer already. */
  name?: string;
}

export interface AskAnswer {
  name: string;
  key: string;
  fingerprint: string;
  /** The same at both sides. */
  pair_code: string;
  request_id: string;
  /** Whether that key is a peer here already: then only routes are exchanged. */
  known: boolean;
}

/** Whom the address names, as a person compares it before anything is done. */
export function targetOf(
  ground: PairingGround,
  target: string,
): Result<Address & Pick<AskAnswer, 'fingerprint' | 'pair_code'>> {
  const identity = ground.account.identity();
  if (isRefusal(identity)) return identity;
  const address = readAddress(target.trim());
  if (isRefusal(address)) return address;
  const { key } = address;
  if (!isUsableKey(knownKeyBytes(key)))
    return new Refusal('invalid_request', 'this is no address: its key is none that may be used', {
      field: 'target',
    });
  if (
    key === identity.key &&
    ground.store.read((tx) => tx.places.get()?.door ?? address.door) === address.door
  )
    return new Refusal('invalid_request', 'that is this machine\u2019s own address', { field: 'target' });
  const isAsked = (origin: string): boolean => origin.startsWith('https:') || ground.relays.includes(origin);
  if (ground.relays.length > 0 && !address.relays.some(isAsked))
    return new Refusal(
      'invalid_request',
      `that address names no relay that may be asked, but ${address.relays.join(', ')}: one that only a peer names must be https; where it is yours, list it in POSTBELL_RELAYS`,
      { field: 'target' },
    );
  return { ...address, fingerprint: fingerprint(key), pair_code: pairCode(identity.key, key) };
}

export async function ask(ground: PairingGround, request: AskRequest): Promise<Result<AskAnswer>> {
  const target = targetOf(ground, request.target);
  if (isRefusal(target)) return target;
  const identity = ground.account.identity();
  if (isRefusal(identity)) return identity;
  const policy = ground.account.policy();
  if (isRefusal(policy)) return policy;
  const isOwn = target.key === identity.key;
  const given = request.name?.normalize('NFC');
  const name = isOwn ? ownNameFor(given) : nameFor(policy, target.key, given);
  if (isRefusal(name)) return name;
  const claimed = claimedName(ground, identity);
  if (isRefusal(claimed)) return claimed;
  if (ground.relays.length === 0)
    return new Refusal(
      'invalid_request',
      'this account has no relay: set POSTBELL_RELAYS, also for the router',
      {
        field: 'POSTBELL_RELAYS',
      },
    );
  const asked = await ground.store.write((tx) => put(tx, ground, target, { name, claimed, isOwn }));
  if (isRefusal(asked)) return asked;
  ground.wake.touch();
  const { key, fingerprint: print, pair_code } = target;
  const known = policy.of(key) !== undefined;
  return { name, key, fingerprint: print, pair_code, request_id: asked, known: known || isOwn };
}

/** Another machine of this account has no petname. */
function ownNameFor(given: string | undefined): Result<string> {
  return given === undefined || foldPetname(given) === ownName
    ? ownName
    : new Refusal('invalid_request', `that is another machine of this account, which is called ${ownName}`, {
        field: 'name',
      });
}

/** Nothing that is anybody else's name here. */
function nameFor(policy: Policy, key: string, given: string | undefined): Result<string> {
  const known = policy.of(key);
  const name = given ?? known?.name;
  if (name === undefined)
    return new Refusal('invalid_request', 'name is required: how the peer is to be called here', {
      field: 'name',
    });
  const fault = petnameFault(name);
  if (fault !== undefined)
    return new Refusal('invalid_request', `the name ${quoted(name)} ${fault}`, { field: 'name' });
  const taken = policy.named(name);
  if (taken !== undefined && taken !== known)
    return new Refusal('conflict', `${quoted(taken.name)} is the name of another peer`, {
      field: 'name',
      key: taken.key,
    });
  if (known !== undefined && taken === undefined)
    return new Refusal('conflict', `that key is the peer ${quoted(known.name)} already`, {
      field: 'name',
      name: known.name,
    });
  return known?.name ?? name;
}

/** @returns the id of the request: that of an earlier one which is still outstanding */
function put(
  tx: Tx,
  { clock, random }: PairingGround,
  { key, door, relays }: Address,
  { name, claimed, isOwn }: { name: string; claimed: string; isOwn: boolean },
): Result<string> {
  const nowMs = clock.nowMs();
  expire(tx, nowMs);
  const earlier = tx.pairing.asked.of(key);
  const namesake = tx.pairing.asked
    .all()
    .find((one) => one.peer_key !== key && foldPetname(one.name) === foldPetname(name));
  if (namesake !== undefined)
    return new Refusal(
      'conflict',
      `another key is asked to pair as ${quoted(namesake.name)} already; choose another name, or withdraw that: postbell peer remove ${quoted(namesake.name)}`,
      { field: 'name', key: namesake.peer_key },
    );
  if (earlier === undefined && tx.pairing.asked.all().length >= limits.pairAskedMax)
    return new Refusal('outbox_full', `${limits.pairAskedMax} pairings are asked for already`);
  // Of an earlier request the door may have been another one.
  tx.pairing.jobs.removeTo(key, 'pair_request');
  const record_id = earlier?.request_id ?? newRecordId(random);
  const job: NewJob = { kind: 'pair_request', peer_key: key, queue: door, relays, record_id, name: claimed };
  const full = roomFor(tx, nowMs, job);
  if (full !== undefined) return full;
  ownPlace(tx, random);
  putJob(tx, { random, nowMs }, job);
  // Whom to trust is no question there.
  if (!isOwn) tx.pairing.asked.put({ peer_key: key, request_id: record_id, name, asked_ms: nowMs });
  return record_id;
}
