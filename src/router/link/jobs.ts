// Pairing and route records that go out, and queues that are no more: each for itself, so that one relay that stalls holds up no other.

import { itemId } from '../../crypto/item-id.ts';
import { pickSuite, suitesKnown } from '../../crypto/seal-suites.ts';
import { dueJobs, jobAccepted, jobFailed, jobRecord, nextJobMs } from '../../peers/control.ts';
import { isTrusted } from '../../peers/who.ts';
import type { ControlJob } from '../../ports/pairing.ts';
import type { Relay } from '../../ports/relay.ts';
import { describeError } from '../../protocol/errors.ts';
import { bytesOfHex } from '../../protocol/wire/bytes.ts';
import { Alarm } from './alarm.ts';
import { isFailure, jitter, type LinkGround, type Self, sealedFor } from './ground.ts';
import { firstTook, itemTtlS, postAt } from './post.ts';

const countAtOnce = 32;
const idleMs = 60_000;
/** A relay takes a request for a minute before and after the time that it says. */
const lateMs = 180_000;

export class Jobs {
  readonly #ground: LinkGround;
  readonly #self: Self;
  readonly #relay: (origin: string) => Relay;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  /** Jobs on their way, by number. */
  readonly #sending = new Map<number, Promise<void>>();
  #purging: Promise<void> | undefined;

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
    await Promise.all([...this.#sending.values(), this.#purging]);
  }

  async #run(): Promise<void> {
    while (!this.#alarm.ended) {
      // A store that cannot be read now ends nothing: it is asked again.
      let untilMs = idleMs;
      try {
        this.#round();
        this.#purging ??= this.#aside(this.#purge(), () => {
          this.#purging = undefined;
        });
        untilMs = this.#untilMs();
      } catch (error) {
        if (this.#alarm.ended) return;
        this.#ground.log.warn('pairing records were not sent', { code: describeError(error).code });
      }
      await this.#alarm.sleep(untilMs);
    }
  }

  #untilMs(): number {
    const { store, clock } = this.#ground;
    const nowMs = clock.nowMs();
    const next = store.read((tx) => nextJobMs(tx, nowMs));
    // What is on its way is due still, and rings when it has come to an end.
    const leastMs = this.#sending.size > 0 ? 1_000 : 50;
    return next === undefined ? idleMs : Math.min(Math.max(next - nowMs, leastMs), idleMs);
  }

  #round(): void {
    const { store, clock } = this.#ground;
    const due = store.read((tx) => dueJobs(tx, clock.nowMs(), countAtOnce + this.#sending.size));
    for (const job of due)
      if (!this.#sending.has(job.seq))
        this.#sending.set(
          job.seq,
          this.#aside(this.#send(job), () => {
            this.#sending.delete(job.seq);
            this.#alarm.ring();
          }),
        );
  }

  async #aside(work: Promise<void>, then: () => void): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!this.#alarm.ended)
        this.#ground.log.warn('pairing records were not sent', { code: describeError(error).code });
    } finally {
      then();
    }
  }

  async #send(job: ControlJob): Promise<void> {
    const { account, store, clock, relays: own, wake } = this.#ground;
    const { identity, place } = this.#self;
    // Whoever is a stranger may be asked to pair; of where this machine is, and that he was admitted, he is told nothing.
    if (job.kind !== 'pair_request' && !isTrusted({ account, own: identity.key }, job.peer_key))
      return store.write((tx) => jobFailed(tx, job, clock.nowMs(), 'no peer now', jitter(this.#ground)));
    const nowMs = clock.nowMs();
    const says = { nowMs, key: identity.key, place, relays: own, suites: suitesKnown };
    const { record, queue, relays } = jobRecord(job, says);
    const suite = pickSuite(suitesKnown) as number;
    const sealed = { ...record, to: job.peer_key };
    const body = sealedFor(this.#ground, sealed, identity, { id: job.queue, suite });
    const id = itemId({ secret: bytesOfHex(job.secret, 16) as Uint8Array, queue, signedAtMs: nowMs });
    const origins = relays.length > 0 ? relays : own;
    const item = { id, body, ttl_s: itemTtlS };
    const answer = await firstTook(
      origins.map((origin) => postAt(this.#relay(origin), queue, item, this.#abort.signal)),
    );
    const failed = answer === 'took' ? undefined : (answer[0]?.message ?? 'no relay is known');
    await store.write((tx) => {
      if (failed === undefined) jobAccepted(tx, job, clock.nowMs());
      else jobFailed(tx, job, clock.nowMs(), failed, jitter(this.#ground));
    });
    wake.touch();
  }

  /**
   * Former queues of this machine, with what still lies in them; for a while again and again: a registration that was under way may
   * arrive late, and mail that a relay takes for such a queue reaches nobody.
   */
  async #purge(): Promise<void> {
    const { store, relays, clock } = this.#ground;
    for (const queue of store.read((tx) => tx.places.retired())) {
      const at = store.read((tx) => tx.places.retiredAt(queue)) ?? '';
      const isLong = clock.nowMs() - Date.parse(at) >= lateMs;
      // One of another identity is not ours to purge any more; it ends by itself.
      const ours = queue.startsWith(`${this.#self.identity.key}.`);
      const done = ours ? await Promise.all(relays.map((origin) => this.#purgeAt(origin, queue))) : [true];
      if (isLong && done.every((one) => one)) await store.write((tx) => tx.places.purged(queue));
    }
  }

  async #purgeAt(origin: string, queue: string): Promise<boolean> {
    try {
      await this.#relay(origin).close(queue, { purge: true }, this.#abort.signal);
      return true;
    } catch (error) {
      if (!isFailure(error)) throw error;
      return error.queueUnknown;
    }
  }
}
