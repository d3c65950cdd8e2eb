// One machine of one person: its disk, its identity, whom it trusts, its clock, and a router that runs or not.

import { signerOf } from '../../../src/crypto/ed25519.ts';
import { suitesKnown } from '../../../src/crypto/seal-suites.ts';
import { openItem } from '../../../src/crypto/sealed-item.ts';
import { endForPeer } from '../../../src/peers/carry.ts';
import { announceRoute } from '../../../src/peers/pairing/announce.ts';
import type { PairingGround } from '../../../src/peers/pairing/ground.ts';
import { takeControl } from '../../../src/peers/pairing/take.ts';
import type { Account, Identity, PolicyFile } from '../../../src/ports/account.ts';
import type { RelayItem } from '../../../src/ports/relay.ts';
import { Refusal } from '../../../src/protocol/errors.ts';
import { foldPetname } from '../../../src/protocol/names/petname.ts';
import type { Policy, TrustedPeer } from '../../../src/protocol/policy.ts';
import { readFields } from '../../../src/protocol/wire/decode.ts';
import { readHeader } from '../../../src/protocol/wire/header.ts';
import { Link } from '../../../src/router/link/link.ts';
import type { Disk, Fate } from '../disk.ts';
import type { Process } from '../process.ts';
import { Watchers } from '../watchers.ts';
import type { Network } from './network.ts';
import { deadliness, type Ports, portsOf, type Tamper } from './ports.ts';
import type { SimulatedRelay } from './relay.ts';
import { type LinkWorld, startMs } from './world.ts';

export interface MachineOptions {
  name: string;
  disk: Disk;
  seed: Uint8Array;
  relays: readonly SimulatedRelay[];
  tamper?: Tamper | undefined;
}

export class Machine {
  readonly name: string;
  readonly disk: Disk;
  readonly identity: Identity;
  readonly relays: readonly string[];
  readonly account: Account;
  /** Its clock against the world's. */
  skewMs = 0;
  /** Whom it trusts, as the owner's file says it. */
  peers: TrustedPeer[] = [];
  /** Somebody is editing that file. */
  policyFault: Refusal | undefined;
  router: { process: Process; link: Link } | undefined;
  readonly #world: LinkWorld;
  readonly #network: Network;
  readonly #tamper: Tamper | undefined;
  readonly #watchers: Watchers;

  constructor(world: LinkWorld, network: Network, { name, disk, seed, relays, tamper }: MachineOptions) {
    this.#world = world;
    this.#watchers = new Watchers(world);
    this.#network = network;
    this.#tamper = tamper;
    this.name = name;
    this.disk = disk;
    this.identity = { ...signerOf(seed), seed };
    this.relays = relays.map(({ origin }) => origin);
    this.account = {
      identity: () => this.identity,
      policy: () => this.policyFault ?? policyOf(this.peers),
    };
    world.seeds.set(this.key, seed);
    disk.onCommit = (changes) => world.committed(this, changes);
    disk.fate = () => this.#fate();
  }

  get key(): string {
    return this.identity.key;
  }

  nowMs(): number {
    return startMs + this.#world.elapsedMs + this.skewMs;
  }

  trusts(key: string): boolean {
    return key === this.key || this.peers.some((peer) => peer.key === key);
  }

  ports(process: Process): Ports {
    return portsOf(this.#world, this, process, this.#tamper);
  }

  start(): void {
    if (this.router !== undefined) return;
    const world = this.#world;
    const process = world.spawn('router', this.name);
    world.tally.count('routers started');
    const ports = this.ports(process);
    const log = {
      info: () => {},
      warn: (event: string, fields?: Readonly<Record<string, unknown>>) => {
        world.note(process, event);
        if (fields?.code === 'internal_error') world.defect(process.name, new Error(event));
      },
    };
    const ground = this.pairing(process, ports);
    const link = new Link({
      ...ports,
      account: this.account,
      log,
      relays: this.relays,
      client: (origin, signer) => this.#network.clientAt(this, process, origin, signer),
      announce: () => announceRoute(ground, suitesKnown),
      control: (record, via) => takeControl(ground, record, via),
      ringFor: () => world.tally.count('rung for'),
    });
    const router = { process, link };
    this.router = router;
    process.atDeath(() => {
      if (this.router === router) this.router = undefined;
    });
  }

  /** As by a signal: it closes its link, and ends. */
  stop(): void {
    const { router } = this;
    if (router === undefined) return;
    this.#world.tally.count('routers stopped');
    router.link.close().then(
      () => router.process.end(),
      (error: unknown) => this.#world.defect(router.process.name, error),
    );
  }

  /** What the use cases of pairing are handed in this process. */
  pairing(process: Process, ports: Ports): PairingGround {
    return {
      ...ports,
      account: this.account,
      policyFile: this.#policyFile(process),
      relays: this.relays,
      name: this.name,
      endOutbox: (tx, key) => void endForPeer(tx, ports, key),
    };
  }

  /** An item on its way out, before anything can become of it. */
  posts(relay: SimulatedRelay, queue: string, { body }: RelayItem): void {
    const [to = '', queueId = ''] = queue.split('.');
    const opened = open(this.#world, body, queue);
    if (opened === undefined) throw new Error(`${this.name} posts what ${to} cannot open`);
    this.#world.tally.count(`posted ${opened.header.type}`);
    this.#world.note(undefined, `${this.name} posts ${opened.header.type} to ${queue} at ${relay.origin}`);
    this.#world.posted({ machine: this, relay: relay.origin, to, queueId, body, ...opened });
  }

  touch(): void {
    this.#watchers.touch();
  }

  watch(owner: Process, onTouch: () => void): () => void {
    return this.#watchers.watch(owner, onTouch);
  }

  /** The file is replaced in one step; its writer may die right before it or right after it. */
  #policyFile(process: Process): PolicyFile {
    const world = this.#world;
    const step = <T>(change: () => T): Promise<T> =>
      new Promise((resolve) => {
        const deadly = world.faults.killAfterWrite * 3 * deadliness(process);
        world.later(process, 'policy file', world.delayMs(), () => {
          if (world.dice.chance(deadly)) return world.kill(process);
          const answer = change();
          if (world.dice.chance(deadly)) return world.kill(process);
          world.later(process, 'policy written', world.delayMs(), () => resolve(answer));
        });
      });
    return {
      add: ({ name, key }) => step(() => this.policyFault ?? this.#add({ name, key, receipts: true })),
      remove: (key) => step(() => this.policyFault ?? this.#remove(key)),
    };
  }

  #add(peer: TrustedPeer): TrustedPeer | Refusal {
    const { key, name } = peer;
    const known = this.peers.find((one) => one.key === key);
    const named = this.peers.find((one) => foldPetname(one.name) === foldPetname(name));
    if (known !== named)
      return new Refusal('conflict', `${name} is another peer's name, or that key has another`);
    if (known !== undefined) return known;
    this.peers = [...this.peers, peer];
    this.#world.did(this, { kind: 'trusts', key });
    return peer;
  }

  #remove(key: string): TrustedPeer | undefined {
    const known = this.peers.find((one) => one.key === key);
    if (known === undefined) return undefined;
    this.peers = this.peers.filter((one) => one !== known);
    this.#world.did(this, { kind: 'trusts no more', key });
    return known;
  }

  /** Of the transaction that begins now; those of nobody are the simulation's own. */
  #fate(): Fate {
    const { current, dice, faults } = this.#world;
    if (current === undefined) return { kind: 'none' };
    if (dice.chance(faults.killInWrite * deadliness(current)))
      return { kind: 'cut', atStatement: dice.between(1, 12) };
    if (dice.chance(faults.brokenWrite)) return { kind: 'broken', atStatement: dice.between(1, 12) };
    return { kind: 'none' };
  }
}

const policyOf = (peers: readonly TrustedPeer[]): Policy => ({
  peers,
  named: (name) => peers.find((one) => foldPetname(one.name) === foldPetname(name)),
  of: (key) => peers.find((one) => one.key === key),
});

/** What lies sealed in an item, for whoever knows every seed. */
export function open(world: LinkWorld, item: Uint8Array, queue: string) {
  const [to = '', queueId = ''] = queue.split('.');
  const seed = world.seeds.get(to);
  const bytes = seed === undefined ? 'no such identity' : openItem({ item, seed, queueId });
  if (typeof bytes === 'string') return undefined;
  const read = readHeader(bytes);
  const record = readFields(bytes);
  return typeof read === 'string' || typeof record === 'string' ? undefined : { header: read.header, record };
}
