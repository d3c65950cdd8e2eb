// The link to other machines: what the router runs beside its socket where the account has an identity and names relays. Every loop
// stands for itself; a relay that stalls delays nothing at the others.

import { Gate } from '../../peers/admit.ts';
import { endForPeer, expireEntries } from '../../peers/carry.ts';
import type { ControlRecord } from '../../peers/pairing/take.ts';
import { ownPlace } from '../../peers/place.ts';
import { rerouteEntries, routeEntries } from '../../peers/route.ts';
import { longestPauseMs } from '../../peers/schedule.ts';
import type { Relay } from '../../ports/relay.ts';
import { describeError, isRefusal, type Result } from '../../protocol/errors.ts';
import type { Message } from '../../protocol/message.ts';
import { Alarm } from './alarm.ts';
import { Cards } from './cards.ts';
import { Drain } from './drain.ts';
import { type LinkGround, queueOf, type Self } from './ground.ts';
import { Jobs } from './jobs.ts';
import { Queries } from './queries.ts';
import { type RelayState, RelayStates } from './relay-states.ts';
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

export interface LinkState {
  relays: RelayState[];
  /** Why nothing comes in, whatever the relays do. */
  why: string | undefined;
}

export class Link {
  readonly #ground: LinkOptions;
  readonly #alarm: Alarm;
  readonly #gate: Gate;
  readonly #states: RelayStates;
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
    this.#states = new RelayStates(ground, (origin) => this.#client(origin).aheadMs?.() ?? 0);
    this.#offsetMs = ground.clock.nowMs() - ground.clock.elapsedMs();
    this.#unwatch = ground.wake.watch(() => this.#alarm.ring());
    this.#running = this.#run();
  }

  /** Each own relay, and why nothing comes in at all: as the files are now. */
  state(): LinkState {
    const why = this.#ground.relays.length === 0 ? undefined : this.#gate.look();
    return { relays: this.#states.all(), why };
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
    if (this.#offsetMs - offsetMs > setBackMs) await store.write((tx) => tx.outbox.hurryBeyond(nowMs, nowMs));
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
            onState: (failure) => this.#states.queueIs(origin, via, failure),
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

  async #stop(): Promise<void> {
    const self = this.#self;
    const loops = this.#loops;
    this.#loops = [];
    this.#senders = new Map();
    this.#states.begin();
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

/** A clock that is set back by less puts nothing off that matters. */
const setBackMs = 60_000;
/** So long a peer is missing from the list before what is on its way to it ends; `peer remove` ends it at once. */
const removedMs = 600_000;
