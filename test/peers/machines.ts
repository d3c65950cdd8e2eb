// Two or more machines of different people on one clock: each with its own real store, identity, list of peers and link, all of them at
// relays that a test holds.

import { isUsableKey, signerOf } from '../../src/crypto/ed25519.ts';
import { keyBytes } from '../../src/crypto/key-text.ts';
import { suitesKnown } from '../../src/crypto/seal-suites.ts';
import type { Caller } from '../../src/mailbox/desk.ts';
import { endForPeer } from '../../src/peers/carry.ts';
import { announceRoute } from '../../src/peers/pairing/announce.ts';
import { takeControl } from '../../src/peers/pairing/take.ts';
import { ownPlace } from '../../src/peers/place.ts';
import type { Account, Identity, PolicyFile } from '../../src/ports/account.ts';
import type { Log } from '../../src/ports/log.ts';
import type { Tx } from '../../src/ports/store.ts';
import { Refusal, type Result } from '../../src/protocol/errors.ts';
import type { Message } from '../../src/protocol/message.ts';
import type { Policy, TrustedPeer } from '../../src/protocol/policy.ts';
import { readPolicy } from '../../src/protocol/policy-text.ts';
import { Link } from '../../src/router/link/link.ts';
import { FakeClock, settle } from '../contract/clock.ts';
import { atEnd, openScene, type Scene } from '../contract/desk.ts';
import { ModelRelay } from './model-relay.ts';

export interface Machine extends Scene {
  name: string;
  account: Account;
  identity: Identity;
  key: string;
  device: string;
  door: string;
  /** Whom it trusts; a test changes it as an owner edits the file. */
  peers: TrustedPeer[];
  /** Where set, the list cannot be read. */
  policyFault: Refusal | undefined;
  running: Link | undefined;
  /** What its router was told to ring for. */
  rang: Message[];
  logged: { event: string; fields: unknown }[];
  start(): void;
  stop(): Promise<void>;
  queue: string;
}

export const seedOf = (number: number): Uint8Array => new Uint8Array(32).fill(number);

export class World {
  readonly clock = new FakeClock();
  readonly relays: ModelRelay[] = [];
  readonly machines: Machine[] = [];

  relay(origin = 'http://relay.test'): ModelRelay {
    const relay = new ModelRelay(this.clock, origin);
    this.relays.push(relay);
    return relay;
  }

  async machine(
    name: string,
    options: { seed?: number; own?: readonly ModelRelay[] } = {},
  ): Promise<Machine> {
    const number = options.seed ?? this.machines.length + 1;
    const scene = await openScene({ clock: this.clock, seed: 100 + this.machines.length });
    const seed = seedOf(number);
    const identity: Identity = { ...signerOf(seed), seed };
    const place = await scene.store.write((tx) => ownPlace(tx, scene.random));
    const own = options.own ?? this.relays;
    const machine: Machine = Object.assign(scene, {
      name,
      identity,
      key: identity.key,
      ...place,
      queue: `${identity.key}.${place.device}`,
      peers: [] as TrustedPeer[],
      policyFault: undefined as Refusal | undefined,
      running: undefined as Link | undefined,
      rang: [] as Message[],
      logged: [] as { event: string; fields: unknown }[],
      account: {
        identity: () => identity,
        policy: (): Result<Policy> => machine.policyFault ?? policyOf(machine.peers),
      },
      start: () => {
        machine.running = this.#link(machine, own);
      },
      stop: async () => {
        const { running } = machine;
        machine.running = undefined;
        await this.#through(running?.close());
      },
    });
    this.machines.push(machine);
    atEnd(() => void machine.stop());
    return machine;
  }

  /** Both hold each other's key, and know where the other is: what pairing ends with. */
  async befriend(a: Machine, b: Machine): Promise<void> {
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      one.peers.push({ name: other.name, key: other.key, receipts: true });
      await one.store.write((tx) =>
        tx.devices.heard({
          peer_key: other.key,
          device: other.device,
          heard_ms: this.clock.nowMs(),
          route: { relays: [], suites: [1] },
        }),
      );
    }
  }

  /** Work ends only when time passes. */
  async #through(work: Promise<void> | undefined): Promise<void> {
    let done = false;
    const watched = Promise.resolve(work).finally(() => {
      done = true;
    });
    for (let second = 0; !done && second < 60; second += 1) await this.clock.advance(1_000);
    await watched;
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await settle();
  }

  #link(machine: Machine, own: readonly ModelRelay[]): Link {
    const log: Log = {
      info: (event, fields) => void machine.logged.push({ event, fields }),
      warn: (event, fields) => void machine.logged.push({ event, fields }),
    };
    const relays = own.map(({ origin }) => origin);
    const pairing = {
      ...machine,
      policyFile: policyFileOf(machine),
      relays,
      endOutbox: (tx: Tx, key: string) => void endForPeer(tx, machine, key),
    };
    return new Link({
      ...machine,
      log,
      relays,
      client: (origin, signer) => {
        const relay = this.relays.find((one) => one.origin === origin);
        if (relay === undefined) throw new Error(`no relay ${origin}`);
        return relay.client(signer);
      },
      control: (record, via) => takeControl(pairing, record, via),
      announce: () => announceRoute(pairing, suitesKnown),
      ringFor: (message) => void machine.rang.push(message),
    });
  }
}

/** As the owner's file would say it. */
function policyOf(peers: readonly TrustedPeer[]): Result<Policy> {
  const members = peers.map(({ name, key, receipts }) => [name, { key, ...(!receipts && { receipts }) }]);
  const isKey = (text: string): boolean => {
    const bytes = keyBytes(text);
    return bytes !== undefined && isUsableKey(bytes);
  };
  return readPolicy(JSON.stringify(Object.fromEntries(members)), isKey);
}

const policyFileOf = (machine: Machine): PolicyFile => ({
  add: async ({ name, key }) => {
    const peer = { name, key, receipts: true };
    if (machine.peers.some((one) => one.name === name && one.key !== key))
      return new Refusal('conflict', 'the name of another key');
    if (!machine.peers.some((one) => one.key === key)) machine.peers.push(peer);
    return peer;
  },
  remove: async (key) => {
    const peer = machine.peers.find((one) => one.key === key);
    machine.peers = machine.peers.filter((one) => one.key !== key);
    return peer;
  },
});

export const cli: Caller = { transport: 'cli', source_host: 'cli' };

export const noSuchFile = new Refusal('store_unreadable', 'peers.json cannot be read');

export interface Pair {
  world: World;
  relay: ModelRelay;
  alice: Machine;
  bob: Machine;
}

/** Two machines that trust each other, at one relay; their routers do not run yet. */
export async function openPair(): Promise<Pair> {
  const world = new World();
  const relay = world.relay();
  const [alice, bob] = [await world.machine('alice'), await world.machine('bob')];
  await world.befriend(alice, bob);
  return { world, relay, alice, bob };
}

/** And their routers run. */
export async function runningPair(): Promise<Pair> {
  const pair = await openPair();
  pair.alice.start();
  pair.bob.start();
  await pair.world.pass(1_000);
  return pair;
}
