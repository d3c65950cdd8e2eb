// The link to other machines: what the router runs beside its socket where the account has an identity and names relays. Every loop
// stands for itself; a relay that stalls delays nothing at the others.

import { Gate } from '../../peers/admit.ts';
import { endForPeer, expireEntries } from '../../peers/carry.ts';
import type { ControlRecord } from '../../peers/pairing/take.ts';
import { ownPlace } from '../../peers/place.ts';
import { rerouteEntries, routeEntries } from '../../peers/route.ts';
import { longestPauseMs } from '../../peers/schedule.ts';
import type { Relay, RelayFailure } from '../../ports/relay.ts';
import { describeError, isRefusal, type Result } from '../../protocol/errors.ts';
import type { Via } from '../../protocol/gate.ts';
import type { Message } from '../../protocol/message.ts';
import { Alarm } from './alarm.ts';
import { Cards } from './cards.ts';
import { Drain } from './drain.ts';
import { type LinkGround, queueOf, type Self } from './ground.ts';
import { Jobs } from './jobs.ts';
import { Queries } from './queries.ts';
import { Sender } from './sender.ts';
import { Teller } from './teller.ts';

const lookMs = 30_000;
const closeEachMs = 3_000;
const page = 500;

export interface LinkOptions extends LinkGround {
  /** Keeps a pairing or route record that passed the gate. */
  control(record: ControlRecord, via: 'device' | 'door'): Promise<'done' | 'later'>;
  /** Tells peers where this account is reached, where that has changed. */
  announce(): Promise<Result<boolean>>;
  /** Rings for what was stored. */
  ringFor(message: Message): void;
}

interface Loop {
  ring?(): void;
  close(): Promise<void>;
}

/** What is wrong at a relay, since when; shown, and logged on change only. */
export interface RelayState {
  origin: string;
  failure: string | undefined;
  since: string;
  /** Where its clock and this machine's are more than a minute apart. */
  clock?: string;
}

export interface LinkState {
  relays: RelayState[];
  /** Why nothing comes in, whatever the relays do. */
  why: string | undefined;
}

export class Link {
  readonly #ground: LinkOptions;
  readonly #alarm: Alarm;
  readonly #gate: Gate;
  readonly #states = new Map<string, RelayState>();
  /** Of each relay, what fails at which queue. */
  readonly #failing = new Map<string, Map<Via, string>>();
  readonly #running: Promise<void>;
  readonly #unwatch: () => void;
  #self: Self | undefined;
  #loops: Loop[] = [];
  #senders = new Map<string, Sender>();
  /** Whether peers are told, or being told, where this account is reached. */
  #announced = true;
  /** Since when something is on its way to a key that the list of peers lacks, by the clock that nobody sets. */
  readonly #lackedMs = new Map<string, number>();
  /** Of the wall clock, from the time that this machine has run: it changes where somebody sets the clock. */
  #offsetMs: number;
  #clients = new Map<string, Relay>();

  constructor(ground: LinkOptions) {
    this.#ground = ground;
    this.#gate = new Gate({ ...ground, control: (record, via) => this.#control(record, via) });
    this.#alarm = new Alarm(ground.clock);
    this.#offsetMs = ground.clock.nowMs() - ground.clock.elapsedMs();
    this.#unwatch = ground.wake.watch(() => this.#alarm.ring());
    this.#running = this.#run();
  }

  /** Each own relay, and why nothing comes in at all: as the files are now. */
  state(): LinkState {
    const why = this.#ground.relays.length === 0 ? undefined : this.#gate.look();
    return { relays: [...this.#states.values()], why };
  }

  /** Workers first, then the queues are marked gone: nothing makes them live again after that. */
  async close(): Promise<void> {
    this.#unwatch();
    this.#alarm.end();
    await this.#running;
    await this.#stop();
  }

  async #run(): Promise<void> {
    let lookedMs = Number.NEGATIVE_INFINITY;
    while (!this.#alarm.ended) {
      try {
        const { clock } = this.#ground;
        const due = clock.elapsedMs() - lookedMs >= lookMs;
        if (due) lookedMs = clock.elapsedMs();
        await this.#round(due);
      } catch (error) {
        this.#ground.log.warn('link failed', { code: describeError(error).code });
      }
      await this.#alarm.sleep(lookMs);
    }
  }

  /** Who this is and whom it trusts may have changed; mail may have been sent. */
  async #round(due: boolean): Promise<void> {
    const self = await this.#whoIAm();
    const changed =
      self?.identity.key !== this.#self?.identity.key ||
      self?.place.device !== this.#self?.place.device ||
      self?.place.door !== this.#self?.place.door;
    if (changed) {
      await this.#stop();
      if (self !== undefined) await this.#prepare();
      this.#self = self;
      if (self !== undefined) this.#start(self);
    }
    if (self === undefined) return;
    await this.#followClock();
    // Whom to tell could not be read then.
    if (!this.#announced) this.#announced = !isRefusal(await this.#ground.announce());
    await this.#carry(due || changed);
    for (const loop of this.#loops) loop.ring?.();
  }

  async #whoIAm(): Promise<Self | undefined> {
    const { account, relays, store } = this.#ground;
    if (relays.length === 0) return undefined;
    this.#gate.look();
    const identity = account.identity();
    if (isRefusal(identity)) return undefined;
    const place =
      store.read((tx) => tx.places.get()) ?? (await store.write((tx) => ownPlace(tx, this.#ground.random)));
    return { identity, place };
  }

  /** What a clock put off that was set back since goes out now. */
  async #followClock(): Promise<void> {
    const { store, clock } = this.#ground;
    const nowMs = clock.nowMs();
    const offsetMs = nowMs - clock.elapsedMs();
    if (this.#offsetMs - offsetMs > clockOffMs)
      await store.write((tx) => tx.outbox.hurryBeyond(nowMs, nowMs));
    this.#offsetMs = offsetMs;
  }

  /** What was sent gets its way; what expired, or goes to nobody any more, ends. */
  async #carry(due: boolean): Promise<void> {
    const { store, account, relays, clock } = this.#ground;
    const policy = account.policy();
    const own = this.#self?.identity.key;
    const { unrouted, removed } = store.read((tx) => ({
      unrouted: tx.outbox.unrouted(1, 0).length > 0 || due,
      removed: isRefusal(policy)
        ? []
        : this.#removed(tx.outbox.peers().filter((key) => key !== own && policy.of(key) === undefined)),
    }));
    if (unrouted || removed.length > 0) {
      const told = await store.write((tx) => {
        let ended = expireEntries(tx, this.#ground, page);
        for (const key of removed) ended += endForPeer(tx, this.#ground, key);
        routeEntries(tx, { nowMs: clock.nowMs(), relays });
        return ended;
      });
      if (told > 0) this.#ground.wake.touch();
    }
    this.#startSenders();
  }

  /** Those that the list has lacked for a while: nothing goes to them from the first moment, but a slip of its editor ends no mail. */
  #removed(lacking: readonly string[]): string[] {
    const nowMs = this.#ground.clock.elapsedMs();
    for (const key of this.#lackedMs.keys()) if (!lacking.includes(key)) this.#lackedMs.delete(key);
    for (const key of lacking) if (!this.#lackedMs.has(key)) this.#lackedMs.set(key, nowMs);
    return lacking.filter((key) => nowMs - (this.#lackedMs.get(key) as number) >= removedMs);
  }

  /** One for each relay that anything goes to. */
  #startSenders(): void {
    const self = this.#self;
    if (self === undefined) return;
    const origins = this.#ground.store.read((tx) => tx.outbox.relays());
    for (const origin of origins) {
      if (this.#senders.has(origin)) continue;
      const sender = new Sender(this.#ground, self, this.#client(origin));
      this.#senders.set(origin, sender);
      this.#loops.push(sender);
    }
  }

  #client(origin: string): Relay {
    const known = this.#clients.get(origin);
    if (known !== undefined) return known;
    const made = this.#ground.client(origin, (this.#self as Self).identity);
    this.#clients.set(origin, made);
    return made;
  }

  /** A fault here leaves the link as it was, to begin at the next round. */
  async #prepare(): Promise<void> {
    const { store, clock, relays, announce } = this.#ground;
    await store.write((tx) => {
      tx.outbox.hurryBeyond(clock.nowMs() + longestPauseMs, clock.nowMs());
      for (const key of tx.outbox.peers()) rerouteEntries(tx, key, { nowMs: clock.nowMs(), relays });
    });
    this.#announced = !isRefusal(await announce());
  }

  #start(self: Self): void {
    const ground = this.#ground;
    const { relays } = ground;
    const client = (origin: string): Relay => this.#client(origin);
    const onStored = (messages: readonly Message[]): void => {
      for (const message of messages) ground.ringFor(message);
    };
    for (const origin of relays)
      for (const [queueId, via] of [
        [self.place.device, 'device'],
        [self.place.door, 'door'],
      ] as const)
        this.#loops.push(
          new Drain(ground, {
            relay: client(origin),
            queue: queueOf(self.identity.key, queueId),
            queueId,
            via,
            gate: this.#gate,
            onStored,
            onState: (failure) => this.#queueIs(origin, via, failure),
          }),
        );
    this.#loops.push(
      new Teller(ground, self, client),
      new Cards(ground, self, client, () => this.#alarm.ring()),
      new Jobs(ground, self, client),
      new Queries(ground, self, client),
    );
  }

  /** A peer that is reached elsewhere from now on gets what is on its way there. */
  async #control(record: ControlRecord, via: 'device' | 'door'): Promise<'done' | 'later'> {
    const { store, clock, relays } = this.#ground;
    const done = await this.#ground.control(record, via);
    if (done === 'done') {
      await store.write((tx) => rerouteEntries(tx, record.from, { nowMs: clock.nowMs(), relays }));
      this.#alarm.ring();
    }
    return done;
  }

  /** A relay answers where it does for every queue: one that it refuses is not forgotten for another that it serves. */
  #queueIs(origin: string, via: Via, failure: RelayFailure | undefined): void {
    const failing = this.#failing.get(origin) ?? new Map<Via, string>();
    this.#failing.set(origin, failing);
    if (failure === undefined) failing.delete(via);
    else failing.set(via, failure.message);
    // What is said already stays said while it holds for one of them.
    const said = this.#states.get(origin)?.failure;
    const still = [...failing.values()].find((one) => one === said);
    this.#relayIs(origin, still ?? failing.get('device') ?? failing.get('door'));
  }

  #relayIs(origin: string, failure: string | undefined): void {
    const { log, clock } = this.#ground;
    const before = this.#states.get(origin);
    const off = clockWords(origin, this.#client(origin).aheadMs?.() ?? 0);
    if (off !== undefined && before?.clock === undefined) log.warn('clock', { relay: origin, why: off });
    if (off === undefined && before?.clock !== undefined)
      log.info('clock', { relay: origin, why: 'the clocks agree again' });
    const since =
      before !== undefined && before.failure === failure
        ? before.since
        : new Date(clock.nowMs()).toISOString();
    this.#states.set(origin, { origin, failure, since, ...(off !== undefined && { clock: off }) });
    if (before?.failure === failure) return;
    if (failure !== undefined) log.warn('relay', { relay: origin, why: failure });
    else log.info('relay', { relay: origin, why: 'answers again' });
  }

  async #stop(): Promise<void> {
    const self = this.#self;
    const loops = this.#loops;
    this.#loops = [];
    this.#senders = new Map();
    this.#failing.clear();
    await Promise.all(loops.map((loop) => loop.close()));
    if (self !== undefined) await this.#leave(self);
    this.#clients = new Map();
    this.#self = undefined;
  }

  async #leave(self: Self): Promise<void> {
    const { clock, relays } = this.#ground;
    const queue = queueOf(self.identity.key, self.place.device);
    await Promise.all(
      relays.map(async (origin) => {
        const abort = new AbortController();
        const cancel = clock.after(closeEachMs, () => abort.abort());
        try {
          await this.#client(origin).close(queue, { purge: false }, abort.signal);
        } catch {
          // Its age says it, in time.
        } finally {
          cancel();
        }
      }),
    );
  }
}

/** So long a peer is missing from the list before what is on its way to it ends; `peer remove` ends it at once. */
const removedMs = 600_000;

/** As a relay accepts the time of a request, and a peer that of what is signed in the future. */
const clockOffMs = 60_000;

function clockWords(origin: string, aheadMs: number): string | undefined {
  if (Math.abs(aheadMs) <= clockOffMs) return undefined;
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const which = aheadMs > 0 ? 'behind' : 'ahead of';
  return `this machine's clock is about ${minutes} min ${which} that of the relay ${origin}; set the one that is wrong: peers refuse what is signed more than a minute ahead of their time, or a day behind it`;
}
