// Who is on the machines of a peer, as their cards say now. Relays that do not answer are named; where none does, that is an error and
// never an empty list. What is shown is one snapshot.

import type { Desk } from '../mailbox/desk.ts';
import type { Identity } from '../ports/account.ts';
import type { RelayFailure } from '../ports/relay.ts';
import type { Tx } from '../ports/store.ts';
import { Fault, isRefusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { CardSession } from '../protocol/wire/record.ts';
import { takePresence } from './card.ts';
import { type KnownDevice, knownDevices } from './choose-device.ts';
import type { DeviceState } from './device-state.ts';
import { youngest } from './presence.ts';
import { relaysOf } from './route.ts';
import { addressee, noIdentity } from './who.ts';

export interface PeerDevice {
  device: string;
  state: DeviceState;
  /** Since it was heard of last; null where it never was. */
  age_ms: number | null;
  /** Where the silence is long. */
  note?: string;
  /** Of the project that was asked for. */
  sessions: (CardSession & { state: DeviceState | 'deaf' })[];
  /** Other projects that it has live sessions in. */
  elsewhere: { project: string; sessions: number }[];
}

export interface PeerDiscovery {
  peer: string;
  devices: PeerDevice[];
  /** Relays that did not answer, and why. */
  failed_relays: { relay: string; why: string }[];
}

export async function discoverPeer(
  desk: Desk,
  request: { peer: string; project: string; limit?: number },
): Promise<Result<PeerDiscovery>> {
  const to = addressee(desk.account, request.peer);
  if (isRefusal(to)) return to;
  const identity = desk.account?.identity() ?? noIdentity();
  if (isRefusal(identity)) return identity;
  const asked = await lookAt(desk, identity, to.key);
  const { answered, failures } = asked;
  if (answered === 0 && failures.length > 0) throw noAnswer(failures);
  const failed_relays = failures.map(({ origin, message }) => ({ relay: origin, why: message }));
  return desk.store.read((tx) => ({
    peer: to.name,
    devices: knownDevices(tx, to.key, desk.clock.nowMs()).map((one) => shown(one, request)),
    failed_relays,
  }));
}

/** Asks the relays of each device of the peer, and keeps what they say. */
async function lookAt(desk: Desk, identity: Identity, key: string) {
  const { link, store, clock } = desk;
  const own = link?.relays ?? [];
  const devices = store.read((tx) =>
    tx.devices.of(key).map(({ device }) => ({ device, origins: relaysOf(tx, key, device, own) })),
  );
  const failures = new Map<string, RelayFailure>();
  let answered = 0;
  for (const { device, origins } of devices) {
    const of = { peer_key: key, device };
    const said = await youngest(of, origins, (origin) => relayAt(desk, origin, identity));
    for (const failure of said.failures) failures.set(failure.origin, failure);
    answered += origins.length - said.failures.length;
    const { presence } = said;
    if (presence !== undefined)
      await store.write((tx: Tx) => takePresence(tx, of, identity, presence, clock.nowMs()));
  }
  return { answered, failures: [...failures.values()] };
}

function relayAt({ link }: Desk, origin: string, identity: Identity) {
  if (link === undefined) throw new Fault('connection_closed', 'this process has no way to relays');
  return link.client(origin, identity);
}

function noAnswer(failures: readonly RelayFailure[]): Fault {
  const code = failures.every(({ kind }) => kind === 'foreign') ? 'invalid_response' : 'connection_closed';
  return new Fault(code, failures.map(({ message }) => message).join('; '));
}

function shown(
  { row, state, age_ms }: KnownDevice,
  { project, limit }: { project: string; limit?: number },
): PeerDevice {
  const here = row.sessions
    .filter((card) => card.project === project)
    .slice(0, limit ?? limits.discoverCountDefault);
  const others = new Map<string, number>();
  for (const card of row.sessions)
    if (card.project !== project) others.set(card.project, (others.get(card.project) ?? 0) + 1);
  const isLong = state === 'away' && age_ms !== undefined && age_ms >= limits.peerLongAwayMs;
  return {
    device: row.device,
    state,
    age_ms: age_ms === undefined ? null : Math.round(age_ms),
    ...(isLong && { note: 'silent for more than a day: it may not come back soon; mail waits for it' }),
    sessions: here.map((card) => ({
      ...card,
      state: state === 'live' && card.bell === 'none' ? ('deaf' as const) : state,
    })),
    elsewhere: [...others].map(([name, sessions]) => ({ project: name, sessions })),
  };
}
