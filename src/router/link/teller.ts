// What peers are told of their mail: facts, gathered for a moment, signed and sent to the machine that the message came from. A fact
// goes when a relay has taken it; one that is lost after that is told again when the message is sent again.

import { leftFailures, retryMs } from '../../peers/schedule.ts';
import { isTrusted } from '../../peers/who.ts';
import type { FactOut } from '../../ports/peers.ts';
import type { Relay } from '../../ports/relay.ts';
import { describeError, isRefusal } from '../../protocol/errors.ts';
import { hex } from '../../protocol/id.ts';
import { wireLimits } from '../../protocol/wire/limits.ts';
import type { ReceiptFact, WireRecord } from '../../protocol/wire/record.ts';
import { Alarm } from './alarm.ts';
import { freshId, jitter, type LinkGround, queueOf, type Self, sealedFor } from './ground.ts';
import { type Destination, firstTook, itemTtlS, postAt, wayTo } from './post.ts';

const gatherMs = 200;
const idleMs = 60_000;
const dropEveryMs = 3_600_000;
/** Longer than any message lives at the relays: whoever has not asked by then never will. */
const keptMs = 30 * 86_400_000;

interface Held {
  failures: number;
  untilMs: number;
}

/** `unknown`: no relay knows the queue; `unsealable`: this release cannot seal for that machine. */
type Answer = 'took' | 'unknown' | 'failed' | 'unsealable';

export class Teller {
  readonly #ground: LinkGround;
  readonly #self: Self;
  readonly #relay: (origin: string) => Relay;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  /** Destinations that no relay takes anything for now: failures in a row, and when to try again. */
  readonly #held = new Map<string, Held>();
  /** Destinations that are being told. */
  readonly #telling = new Map<string, Promise<void>>();
  readonly #running: Promise<void>;
  #droppedMs = Number.NEGATIVE_INFINITY;

  constructor(ground: LinkGround, self: Self, relay: (origin: string) => Relay) {
    this.#ground = ground;
    this.#self = self;
    this.#relay = relay;
    this.#alarm = new Alarm(ground.clock);
    this.#running = this.#run();
  }

  ring(): void {
    this.#alarm.ring();
  }

  async close(): Promise<void> {
    this.#alarm.end();
    this.#abort.abort();
    await this.#running;
    await Promise.all(this.#telling.values());
  }

  async #run(): Promise<void> {
    while (!this.#alarm.ended) {
      try {
        await this.#round();
      } catch (error) {
        if (this.#alarm.ended) return;
        this.#ground.log.warn('receipts were not sent', { code: describeError(error).code });
      }
      await this.#alarm.sleep(this.#untilMs());
      // Facts of one turn come close together.
      if (!this.#alarm.ended) await pause(this.#ground, gatherMs);
    }
  }

  #untilMs(): number {
    const nowMs = this.#ground.clock.elapsedMs();
    const next = [...this.#held.values()].map(({ untilMs }) => untilMs - nowMs);
    return Math.max(50, Math.min(idleMs, ...next));
  }

  async #round(): Promise<void> {
    const { store, account, clock } = this.#ground;
    const policy = account.policy();
    if (isRefusal(policy)) return;
    const destinations = store.read((tx) => tx.factsOut.destinations());
    const isKnown = (key: string): boolean => key === this.#self.identity.key || policy.of(key) !== undefined;
    const strangers = destinations.filter(({ peer_key }) => !isKnown(peer_key));
    const isOldDue = clock.elapsedMs() - this.#droppedMs >= dropEveryMs;
    if (strangers.length > 0 || (isOldDue && destinations.length > 0)) {
      this.#droppedMs = clock.elapsedMs();
      await store.write((tx) => {
        for (const { peer_key } of strangers) tx.factsOut.drop({ peer_key });
        tx.factsOut.drop({ beforeMs: clock.nowMs() - keptMs });
      });
    }
    const quiet = (key: string): boolean => policy.of(key)?.receipts === false;
    const due = destinations.filter((to) => isKnown(to.peer_key) && !this.#isHeld(to));
    for (const to of due)
      if (!this.#telling.has(nameOf(to)))
        this.#telling.set(nameOf(to), this.#tellAside(to, quiet(to.peer_key)));
  }

  /** Each for itself: a relay that stalls delays nothing for others. */
  async #tellAside(to: Destination, onlyStored: boolean): Promise<void> {
    try {
      await this.#tell(to, onlyStored);
    } catch (error) {
      if (!this.#alarm.ended)
        this.#ground.log.warn('receipts were not sent', { code: describeError(error).code });
    } finally {
      this.#telling.delete(nameOf(to));
      this.#alarm.ring();
    }
  }

  #isHeld(to: Destination): boolean {
    const held = this.#held.get(nameOf(to));
    return held !== undefined && held.untilMs > this.#ground.clock.elapsedMs();
  }

  /** All that it is to be told now, as many records as that takes. */
  async #tell(to: Destination, onlyStored: boolean): Promise<void> {
    const { account, store } = this.#ground;
    for (;;) {
      const rows = store.read((tx) => tx.factsOut.next(to.peer_key, to.device, wireLimits.factsMax));
      if (rows.length === 0 || this.#alarm.ended) return;
      if (!isTrusted({ account, own: this.#self.identity.key }, to.peer_key)) return;
      const told = onlyStored ? rows.filter(({ fact }) => fact === 'stored' || fact === 'refused') : rows;
      if (told.length > 0 && !(await this.#post(to, told))) return;
      await store.write((tx) => tx.factsOut.remove(rows.map(({ seq }) => seq)));
    }
  }

  /**
   * Where the machine has left its queue, the one of the peer that was heard of last may be the same under a new name; to any other
   * these facts mean nothing. @returns whether they are done with
   */
  async #post(to: Destination, rows: readonly FactOut[]): Promise<boolean> {
    const answer = await this.#postAt(to, rows);
    if (answer === 'took' || answer === 'unsealable') {
      if (answer === 'unsealable') this.#ground.log.warn('receipts cannot be sealed', { count: rows.length });
      this.#held.delete(nameOf(to));
      return true;
    }
    const held = this.#hold(to);
    if (answer === 'failed' || held.failures < leftFailures) return false;
    const { account, store } = this.#ground;
    const [newest] = store.read((tx) => tx.devices.of(to.peer_key));
    if (newest === undefined || newest.device === to.device) return false;
    if (!isTrusted({ account, own: this.#self.identity.key }, to.peer_key)) return false;
    const took = (await this.#postAt(newest, rows)) === 'took';
    if (took) held.untilMs = this.#ground.clock.elapsedMs();
    return took;
  }

  async #postAt(to: Destination, rows: readonly FactOut[]): Promise<Answer> {
    const { clock, random } = this.#ground;
    const { identity, place } = this.#self;
    const { queue, origins, suite } = wayTo(this.#ground, to);
    if (suite === undefined) return 'unsealable';
    const record: WireRecord & { to: string } = {
      type: 'receipt',
      from: identity.key,
      to: to.peer_key,
      time_ms: clock.nowMs(),
      id: freshId(this.#ground),
      fields: { from_device: place.device, facts: rows.map(factOf) },
    };
    const body = sealedFor(this.#ground, record, identity, { id: to.device, suite });
    const item = { id: hex(random.bytes(16)), body, ttl_s: itemTtlS };
    const answer = await firstTook(
      origins.map((origin) => postAt(this.#relay(origin), queue, item, this.#abort.signal)),
    );
    if (answer === 'took') return 'took';
    return answer.every(({ queueUnknown }) => queueUnknown) ? 'unknown' : 'failed';
  }

  #hold(to: Destination): Held {
    const failures = (this.#held.get(nameOf(to))?.failures ?? 0) + 1;
    const untilMs = this.#ground.clock.elapsedMs() + retryMs(failures, jitter(this.#ground));
    const held = { failures, untilMs };
    this.#held.set(nameOf(to), held);
    return held;
  }
}

const nameOf = ({ peer_key, device }: Destination): string => queueOf(peer_key, device);

const pause = ({ clock }: LinkGround, ms: number): Promise<void> =>
  new Promise((resolve) => clock.after(ms, resolve));

/** Rows hold what the types of facts name. */
const factOf = ({ wire_id, fact, detail, at_ms }: FactOut): ReceiptFact => ({
  message_id: wire_id,
  fact: { kind: fact, detail } as ReceiptFact['fact'],
  time_ms: at_ms,
});
