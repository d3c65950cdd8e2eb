// Hop 3a: what a queue of this account held, through the trust gate. Order and outcomes are fixed, the first step that fails decides,
// and no model judges. A batch is one transaction; only what it committed, or what was refused for good, is settled at the relay.

import { type Desk, timestamp } from '../mailbox/desk.ts';
import type { Account, Identity } from '../ports/account.ts';
import type { Log } from '../ports/log.ts';
import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { describeError, Fault, isRefusal } from '../protocol/errors.ts';
import { type GateStep, hasInstants, isFresh } from '../protocol/gate.ts';
import type { Message } from '../protocol/message.ts';
import type { Policy } from '../protocol/policy.ts';
import { readFields } from '../protocol/wire/decode.ts';
import type { WireRecord } from '../protocol/wire/record.ts';
import { type Arrival, type Inspected, inspect } from './inspect.ts';
import type { ControlRecord } from './pairing/take.ts';
import { ReplayMemory, replayId } from './replay.ts';
import { repeatFacts, takeMessage, tellRefused } from './take-message.ts';
import { takeFacts } from './take-receipt.ts';

export interface GateGround extends Pick<Desk, 'store' | 'clock' | 'random' | 'wake' | 'quota'> {
  account: Account;
  log: Log;
  /** Hands a pairing or route record, which passed the gate, to those who keep them. */
  control(record: ControlRecord, via: Arrival['via']): Promise<'done' | 'later'>;
}

const isControl = (record: WireRecord): record is ControlRecord =>
  record.type === 'pair_request' || record.type === 'pair_accept' || record.type === 'route';

/** What the relay is told of an item. */
export type Verdict = 'settle' | { defer_s: number };

export interface Admitted {
  /** In the order of the arrivals. */
  verdicts: Verdict[];
  /** What was stored, to be rung for. */
  stored: Message[];
  /** Whether peers are to be told something. */
  told: boolean;
}

/** With the keys whose query it answers. */
type Batch = Admitted & { answered: Set<string> };

const laterS = 30;
/** A query of one peer is answered once in it. */
const queryEveryMs = 60_000;

type Passed = { record: WireRecord; isPeer: boolean; via: Arrival['via'] };
type Refused = {
  step: GateStep;
  inspected?: Inspected;
  reason?: 'malformed' | 'too_large' | 'reserved' | 'unknown_field';
};

export class Gate {
  readonly #ground: GateGround;
  readonly #replayed = new ReplayMemory();
  readonly #queried = new Map<string, number>();
  /** What the account's files keep out, and what the store does: each said when it changes. */
  #shut: string | undefined;
  #fault: string | undefined;

  constructor(ground: GateGround) {
    this.#ground = ground;
  }

  /** Why nothing can be let in now; undefined where the gate is open. */
  get shut(): string | undefined {
    return this.#shut ?? this.#fault;
  }

  /** Reads the key and the list of peers anew. @returns `shut` */
  look(): string | undefined {
    this.#opened();
    return this.shut;
  }

  async admit(arrivals: readonly Arrival[]): Promise<Admitted> {
    const opened = this.#opened();
    if (opened === undefined) return allLater(arrivals);
    const asked = (key: string): boolean =>
      this.#ground.store.read((tx) => tx.pairing.asked.of(key) !== undefined);
    try {
      const looked = onceEach(arrivals.map((arrival) => this.#look(inspect(arrival, { ...opened, asked }))));
      const admitted = await this.#commit(looked);
      this.#fault = this.#say(this.#fault, undefined);
      return { ...admitted, verdicts: await this.#control(looked, admitted.verdicts) };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.#fault = this.#say(this.#fault, error.message);
      return allLater(arrivals);
    }
  }

  /** Undefined where the key or the list of peers keeps everything out. */
  #opened(): { identity: Identity; policy: Policy } | undefined {
    const identity = this.#ground.account.identity();
    const policy = this.#ground.account.policy();
    const closed = isRefusal(identity) ? identity : isRefusal(policy) ? policy : undefined;
    this.#shut = this.#say(this.#shut, closed?.message);
    return isRefusal(identity) || isRefusal(policy) ? undefined : { identity, policy };
  }

  #say(before: string | undefined, why: string | undefined): string | undefined {
    const { log } = this.#ground;
    if (why !== undefined && why !== before) log.warn('nothing can be taken in', { why });
    if (why === undefined && before !== undefined) log.info('mail is taken in again', { after: before });
    return why;
  }

  /** Steps 4 to 6, for what the steps before let through. Of a message, whether it is known is asked of the store. */
  #look(inspected: Inspected | GateStep): Passed | Refused {
    if (typeof inspected === 'string') return { step: inspected };
    const { header, isPeer, via } = inspected;
    if (!isFresh(header.time_ms, this.#ground.clock.nowMs())) return { step: 'fresh', inspected };
    if (header.type !== 'message' && this.#replayed.has(header.from, replayId(header), isPeer))
      return { step: 'replay', inspected };
    const record = readFields(inspected.record);
    if (typeof record === 'string') return { step: 'fields', inspected, reason: record };
    if (!hasInstants(record)) return { step: 'fields', inspected, reason: 'malformed' };
    return { record, isPeer, via };
  }

  async #commit(looked: readonly (Passed | Refused)[]): Promise<Admitted> {
    const { answered, ...admitted } = await this.#ground.store.write((tx) => {
      const batch: Batch = { verdicts: [], stored: [], told: false, answered: new Set() };
      for (const one of looked) batch.verdicts.push(this.#one(tx, one, batch));
      return batch;
    });
    for (const key of answered) this.#queried.set(key, this.#ground.clock.elapsedMs());
    for (const one of looked) if ('record' in one) this.#remember(one);
    if (admitted.stored.length > 0 || admitted.told) this.#ground.wake.touch();
    return admitted;
  }

  #one(tx: Tx, looked: Passed | Refused, batch: Batch): Verdict {
    if ('step' in looked) {
      const known = knownOf(tx, looked);
      const step = known !== undefined && looked.step === 'fields' ? 'replay' : looked.step;
      tx.gate.refused(step, timestamp(this.#ground));
      batch.told = this.#tell(tx, looked, known) || batch.told;
      return 'settle';
    }
    const { record } = looked;
    // By a record of a stranger nobody learns where a peer is.
    if (looked.isPeer && 'from_device' in record.fields)
      tx.devices.heard({
        peer_key: record.from,
        device: record.fields.from_device,
        // When it was signed: a relay may have kept it for hours.
        heard_ms: Math.min(record.time_ms, this.#ground.clock.nowMs()),
      });
    if (record.type === 'message') return this.#message(tx, record, batch);
    if (record.type === 'receipt') this.#facts(tx, record, batch);
    if (record.type === 'query') this.#answer(tx, record, batch);
    return 'settle';
  }

  #message(
    tx: Tx,
    { fields, ...header }: Extract<WireRecord, { type: 'message' }>,
    batch: Admitted,
  ): Verdict {
    const taken = takeMessage(tx, this.#ground, { header, fields });
    if (taken.kind === 'later') return { defer_s: laterS };
    if (taken.kind === 'stored') batch.stored.push(taken.message);
    if (taken.kind === 'known') tx.gate.refused('replay', timestamp(this.#ground));
    if (taken.kind === 'refused') tx.gate.refused('fields', timestamp(this.#ground));
    batch.told = true;
    return 'settle';
  }

  #facts(tx: Tx, record: Extract<WireRecord, { type: 'receipt' }>, batch: Admitted): void {
    const foreign = takeFacts(tx, this.#ground, record.from, record.fields.facts);
    for (let count = 0; count < foreign; count += 1) tx.gate.refused('receipt', timestamp(this.#ground));
    batch.told = true;
  }

  #answer(tx: Tx, { from, fields }: Extract<WireRecord, { type: 'query' }>, batch: Batch): void {
    const nowMs = this.#ground.clock.elapsedMs();
    if (nowMs - (this.#queried.get(from) ?? Number.NEGATIVE_INFINITY) < queryEveryMs) return;
    if (batch.answered.has(from)) return;
    batch.answered.add(from);
    for (const id of fields.ids) {
      const known = tx.messages.byOrigin(from, id);
      if (known !== undefined) repeatFacts(tx, known, fields.from_device);
    }
    batch.told = true;
  }

  /** A peer whose message was refused is told so; a stranger never is. */
  #tell(tx: Tx, { step, inspected, reason }: Refused, known: StoredMessage | undefined): boolean {
    if (inspected === undefined || !inspected.isPeer || inspected.header.type !== 'message') return false;
    const why = step === 'fresh' ? 'stale' : reason;
    if (why === undefined) return false;
    const device = senderOf(tx, inspected);
    if (device === undefined) return false;
    // One that was stored already is no other for being sent again too late, or in another form.
    if (known !== undefined) repeatFacts(tx, known, device);
    else tellRefused(tx, inspected.header, device, why, this.#ground.clock.nowMs());
    return true;
  }

  #remember({ record, isPeer }: Passed): void {
    const kept = record.type === 'receipt' || record.type === 'query';
    if (kept) this.#replayed.add(record.from, record.id, isPeer);
  }

  /** Pairing and routes have their own handler; what it cannot keep now stays on the relay. */
  async #control(looked: readonly (Passed | Refused)[], verdicts: readonly Verdict[]): Promise<Verdict[]> {
    const all = [...verdicts];
    for (const [index, one] of looked.entries()) {
      if (!('record' in one)) continue;
      const { record } = one;
      if (!isControl(record)) continue;
      try {
        const done = await this.#ground.control(record, one.via);
        if (done === 'later') all[index] = { defer_s: laterS };
        else this.#replayed.add(one.record.from, replayId(one.record), one.isPeer);
      } catch (error) {
        this.#ground.log.warn('a pairing record was not kept', { code: describeError(error).code });
        all[index] = { defer_s: laterS };
      }
    }
    return all;
  }
}

const allLater = (arrivals: readonly Arrival[]): Admitted => ({
  verdicts: arrivals.map(() => ({ defer_s: laterS })),
  stored: [],
  told: false,
});

/** Of records that are no messages, one that comes twice in a batch passes once. */
function onceEach(looked: readonly (Passed | Refused)[]): (Passed | Refused)[] {
  const seen = new Set<string>();
  return looked.map((one) => {
    if (!('record' in one) || one.record.type === 'message') return one;
    const { from, id, time_ms } = one.record;
    const name = `${from} ${id} ${time_ms}`;
    if (seen.has(name)) return { step: 'replay' };
    seen.add(name);
    return one;
  });
}

/** The message that is stored already under the id of one that was refused. */
function knownOf(tx: Tx, { inspected }: Refused): StoredMessage | undefined {
  if (inspected === undefined || !inspected.isPeer || inspected.header.type !== 'message') return undefined;
  return tx.messages.byOrigin(inspected.header.from, inspected.header.id);
}

/** The device of a refused message: as it says itself, else the one that its key was heard of last. */
function senderOf(tx: Tx, { record, header }: Inspected): string | undefined {
  const read = readFields(record);
  return typeof read !== 'string' && read.type === 'message'
    ? read.fields.from_device
    : tx.devices.of(header.from)[0]?.device;
}
