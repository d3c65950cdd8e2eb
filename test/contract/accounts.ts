// Accounts on machines of their own: each a real store, real files of key and policy, and a control outbox. What one says is signed,
// written, read and verified as on the wire, and carried to another by hand.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { signRecord, verifyRecord } from '../../src/crypto/record.ts';
import { suitesKnown } from '../../src/crypto/seal-suites.ts';
import { endForPeer } from '../../src/peers/carry.ts';
import { dueJobs, jobAccepted, jobRecord } from '../../src/peers/control.ts';
import { createIdentity, showIdentity } from '../../src/peers/identity.ts';
import { ask } from '../../src/peers/pairing/ask.ts';
import type { PairingGround } from '../../src/peers/pairing/ground.ts';
import { type ControlRecord, takeControl } from '../../src/peers/pairing/take.ts';
import { accountOf, identityFile } from '../../src/platform/account.ts';
import { policyFileAt } from '../../src/platform/policy-file.ts';
import type { PolicyFile } from '../../src/ports/account.ts';
import type { ControlJob } from '../../src/ports/pairing.ts';
import type { Store, Tx } from '../../src/ports/store.ts';
import { readFields } from '../../src/protocol/wire/decode.ts';
import type { WireRecord } from '../../src/protocol/wire/record.ts';
import { takeFile } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';
import { FakeClock, seededRandom } from './clock.ts';
import { atEnd, ok, RecordingWake, temporaryDirectory } from './desk.ts';

/** One record as it arrives: its bytes were signed and verified. */
export interface Carried {
  record: ControlRecord;
  queue: string;
  relays: readonly string[];
}

export class TestAccount implements PairingGround {
  readonly directory = temporaryDirectory();
  readonly random;
  readonly wake = new RecordingWake();
  readonly clock: FakeClock;
  readonly files = {
    keyFile: path.join(this.directory, 'identity.key'),
    policyFile: path.join(this.directory, 'peers.json'),
  };
  readonly account = accountOf(this.files);
  relays: readonly string[];
  name: string | undefined;
  /** Keys whose outbox was ended. */
  readonly ended: string[] = [];
  /** Replaced by a scene in which the policy cannot be written. */
  policyFile: PolicyFile;
  #store: Store | undefined;

  constructor(clock: FakeClock, seed: number, name: string | undefined) {
    this.clock = clock;
    this.random = seededRandom(seed);
    this.name = name;
    this.relays = [`https://relay-${seed}.example`];
    this.policyFile = policyFileAt(this.files.policyFile, {
      clock: { ...wall, elapsedMs: () => clock.elapsedMs() },
      takeLock: takeFile,
    });
  }

  get store(): Store {
    return this.#store as Store;
  }

  endOutbox(tx: Tx, key: string): void {
    this.ended.push(key);
    endForPeer(tx, this, key);
  }

  /** As a process that begins: opened anew where it was open before. */
  async restart(): Promise<void> {
    this.#store?.close();
    this.#store = await openStore({
      path: path.join(this.directory, 'postbell.db'),
      clock: this.clock,
      random: this.random,
    });
  }

  close(): void {
    this.#store?.close();
  }

  get key(): string {
    return ok(this.account.identity()).key;
  }

  async address(): Promise<string> {
    return ok(await showIdentity(this, { newDoor: false })).address as string;
  }

  get policyText(): string {
    return readFileSync(this.files.policyFile, 'utf8');
  }

  set policyText(text: string) {
    writeFileSync(this.files.policyFile, text);
  }

  /** Petnames with their keys. */
  get peers(): Record<string, string> {
    return Object.fromEntries(ok(this.account.policy()).peers.map(({ name, key }) => [name, key]));
  }

  jobs(): ControlJob[] {
    return this.store.read((tx) => tx.pairing.jobs.all());
  }

  /** What is due now goes out, and each is taken by a relay. */
  async send(): Promise<Carried[]> {
    const place = this.store.read((tx) => tx.places.get());
    if (place === undefined) return [];
    const jobs = this.store.read((tx) => dueJobs(tx, this.clock.nowMs(), 200));
    const identity = ok(this.account.identity());
    const sent = jobs.map((job) => {
      const says = {
        nowMs: this.clock.nowMs(),
        key: this.key,
        place,
        relays: this.relays,
        suites: suitesKnown,
      };
      const { record, queue, relays } = jobRecord(job, says);
      return { record: overTheWire(record, identity), queue, relays };
    });
    await this.store.write((tx) => {
      for (const job of jobs) jobAccepted(tx, job, this.clock.nowMs());
    });
    return sent;
  }

  /** What is for this account's own queues arrives; the rest of it is somebody else's. */
  async take(carried: readonly Carried[]): Promise<('done' | 'later')[]> {
    const place = this.store.read((tx) => tx.places.get());
    const answers: ('done' | 'later')[] = [];
    for (const { record, queue } of carried) {
      const [key, id] = queue.split('.');
      if (key !== this.key || place === undefined) continue;
      if (id === place.door) answers.push(await takeControl(this, record, 'door'));
      else if (id === place.device) answers.push(await takeControl(this, record, 'device'));
    }
    return answers;
  }
}

/** The policy file's lock is waited for by real time. */
const wall = {
  nowMs: () => 0,
  elapsedMs: () => 0,
  after: (ms: number, then: () => void) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
};

function overTheWire(record: WireRecord, identity: Parameters<typeof signRecord>[1]): ControlRecord {
  const bytes = signRecord(record, identity);
  if (!verifyRecord(bytes)) throw new Error('a record of ours does not verify');
  const read = readFields(bytes);
  if (typeof read === 'string') throw new Error(`a record of ours is ${read}`);
  return read as ControlRecord;
}

let seeds = 100;

export async function openAccount(clock: FakeClock, name?: string): Promise<TestAccount> {
  seeds += 1;
  const account = new TestAccount(clock, seeds, name);
  mkdirSync(account.directory, { recursive: true });
  ok(
    createIdentity({ file: identityFile(account.files.keyFile), random: account.random }, { replace: false }),
  );
  await account.restart();
  atEnd(() => account.close());
  return account;
}

/** Two accounts that know nothing of each other. */
export async function openTwo(): Promise<{ clock: FakeClock; a: TestAccount; b: TestAccount }> {
  const clock = new FakeClock();
  return { clock, a: await openAccount(clock, 'alice-laptop'), b: await openAccount(clock, 'bob') };
}

/** What the sessions of an account are still to be rung for, as one that is not live yet sees it. */
export const noticesOf = (of: TestAccount) => of.store.read((tx) => tx.pairing.notices.waiting('nobody'));

/** A request from an account, as it would arrive now. */
export async function requestOf(from: TestAccount, to: TestAccount) {
  const isPeer = ok(from.account.policy()).of(to.key) !== undefined;
  ok(
    await ask(from, { target: await to.address(), ...(!isPeer && { name: `peer ${to.key}`.slice(0, 40) }) }),
  );
  const sent = await from.send();
  return sent.find(({ record }) => record.type === 'pair_request') as {
    record: ControlRecord;
  };
}

/** An acceptance that nobody need have asked for. */
export async function acceptanceFrom(from: TestAccount, to: TestAccount, request_id?: string) {
  const scratch = await requestOf(from, to);
  const { record } = scratch as {
    record: Extract<ControlRecord, { type: 'pair_request' }>;
  };
  return {
    ...record,
    type: 'pair_accept' as const,
    fields: { ...record.fields, request_id: request_id ?? record.id },
  };
}
