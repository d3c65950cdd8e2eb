// Everything that goes to one relay from the outbox: in order for each queue, and no queue held up by another.

import { itemId } from '../../crypto/item-id.ts';
import { pickSuite } from '../../crypto/seal-suites.ts';
import { messageRecord, relayFailed, relayTook } from '../../peers/carry.ts';
import { isTrusted } from '../../peers/who.ts';
import type { OutboxPost, OutboxRow } from '../../ports/peers.ts';
import { type Relay, RelayFailure } from '../../ports/relay.ts';
import type { Tx } from '../../ports/store.ts';
import { describeError } from '../../protocol/errors.ts';
import { bytesOfHex } from '../../protocol/wire/bytes.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';
import { Alarm } from './alarm.ts';
import { jitter, type LinkGround, queueOf, type Self, sealedFor } from './ground.ts';
import { itemTtlS, postAt } from './post.ts';

const pageCount = 256;
/** In flight to one queue, once it took one; and to one relay. */
const windowPerQueue = 32;
const idleMs = 60_000;
const itemTtlMinS = 60;

type Due = OutboxPost & OutboxRow;
interface Drafted {
  due: Due;
  nowMs: number;
  record: WireRecord | undefined;
  suite: number | undefined;
}
type Posted = { due: Due; failure: RelayFailure | undefined };

export class Sender {
  readonly #ground: LinkGround;
  readonly #self: Self;
  readonly #relay: Relay;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  /** Whether something was due in this round for one that is no peer: the link ends it. */
  #refused = false;

  constructor(ground: LinkGround, self: Self, relay: Relay) {
    this.#ground = ground;
    this.#self = self;
    this.#relay = relay;
    this.#alarm = new Alarm(ground.clock);
    this.#running = this.#run();
  }

  /** Something may be due. */
  ring(): void {
    this.#alarm.ring();
  }

  async close(): Promise<void> {
    this.#alarm.end();
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#alarm.ended) {
      try {
        if (await this.#round()) continue;
        await this.#alarm.sleep(this.#untilDueMs());
      } catch (error) {
        if (this.#alarm.ended) return;
        this.#ground.log.warn('sending failed', { code: describeError(error).code });
        await this.#alarm.sleep(1_000);
      }
    }
  }

  #untilDueMs(): number {
    const { store, clock } = this.#ground;
    const nowMs = clock.nowMs();
    const next = store.read((tx) => tx.outbox.nextDueMs(this.#relay.origin, nowMs));
    // What is held up by another for its queue is due already: it is looked for when that one is.
    return next === undefined ? idleMs : Math.min(Math.max(next - nowMs, this.#refused ? 1_000 : 50), idleMs);
  }

  /** @returns whether more may be due at once */
  async #round(): Promise<boolean> {
    const { store, clock } = this.#ground;
    const due = store.read((tx) => tx.outbox.due(this.#relay.origin, clock.nowMs(), pageCount));
    if (due.length === 0) return false;
    this.#refused = false;
    const queues = new Map<string, Due[]>();
    for (const one of due) {
      const queue = queueOf(one.peer_key, one.device);
      queues.set(queue, [...(queues.get(queue) ?? []), one]);
    }
    const took = await Promise.all([...queues].map(([queue, entries]) => this.#queue(queue, entries)));
    return took.some((all) => all);
  }

  /**
   * One first; where it is taken, the others in order, several at once. What became of some is written while the next are on
   * their way. What ended meanwhile, or goes to one that is no peer any more, does not go out. @returns whether all were taken
   */
  async #queue(queue: string, entries: readonly Due[]): Promise<boolean> {
    let window = 1;
    let recording = Promise.resolve();
    try {
      for (let at = 0; at < entries.length; ) {
        if (this.#alarm.ended) return false;
        const some = entries.slice(at, at + window);
        // All of a queue go to one key.
        if (!this.#isTrusted((some[0] as Due).peer_key)) return false;
        const records = this.#records(some);
        const posted = await Promise.all(records.map((one) => this.#post(queue, one)));
        await recording;
        recording = this.#record(posted);
        // Awaited with the next, or at the end.
        recording.catch(() => {});
        if (posted.some(({ failure }) => failure !== undefined && !failure.queueUnknown)) return false;
        at += some.length;
        window = windowPerQueue;
      }
      return true;
    } finally {
      await recording;
    }
  }

  #isTrusted(key: string): boolean {
    const { account } = this.#ground;
    const trusted = isTrusted({ account, own: this.#self.identity.key }, key);
    this.#refused ||= !trusted;
    return trusted;
  }

  /** What the entries say that are still to go, in one look; undefined where there is no way to seal it for that machine. */
  #records(entries: readonly Due[]): Drafted[] {
    const { store, clock } = this.#ground;
    const { identity, place } = this.#self;
    const from = { key: identity.key, device: place.device };
    const nowMs = clock.nowMs();
    return store.read((tx) => {
      const suites = new Map<string, number | undefined>();
      return entries
        .filter((due) => this.#isStillDue(tx, due, nowMs))
        .map((due) => {
          if (!suites.has(due.device))
            suites.set(due.device, pickSuite(tx.devices.get(due.peer_key, due.device)?.suites ?? [1]));
          return { due, nowMs, record: messageRecord(tx, due, from, nowMs), suite: suites.get(due.device) };
        });
    });
  }

  /** While others of the round were on their way, its receipt may have come, or somebody may have ended it. */
  #isStillDue(tx: Tx, { message_id, device, expires_ms }: Due, nowMs: number): boolean {
    const post = tx.outbox.post(message_id, this.#relay.origin);
    return post !== undefined && post.next_ms !== null && post.device === device && expires_ms > nowMs;
  }

  async #post(queue: string, { due, nowMs, record, suite }: Drafted): Promise<Posted> {
    if (record === undefined || suite === undefined) return { due, failure: this.#unsendable() };
    const { identity } = this.#self;
    const to = { ...record, to: due.peer_key };
    const body = sealedFor(this.#ground, to, identity, { id: due.device, suite });
    const secret = bytesOfHex(due.secret, 16) as Uint8Array;
    const id = itemId({ secret, queue, signedAtMs: nowMs });
    const leftS = Math.ceil((due.expires_ms - nowMs) / 1_000);
    const ttl_s = Math.min(Math.max(leftS, itemTtlMinS), itemTtlS);
    return { due, failure: await postAt(this.#relay, queue, { id, body, ttl_s }, this.#abort.signal) };
  }

  #unsendable(): RelayFailure {
    const { origin } = this.#relay;
    return new RelayFailure(
      'refused',
      origin,
      'the machine of the peer knows no way of sealing that this release knows',
      {
        status: 404,
      },
    );
  }

  async #record(posted: readonly Posted[]): Promise<void> {
    if (posted.length === 0) return;
    const { store, wake } = this.#ground;
    await store.write((tx) => {
      for (const { due, failure } of posted) {
        // What became of it while it was under way counts.
        const entry = tx.outbox.of(due.message_id);
        const post = tx.outbox.post(due.message_id, this.#relay.origin);
        if (entry === undefined || post === undefined) continue;
        if (failure === undefined) relayTook(tx, this.#ground, entry, post);
        else relayFailed(tx, this.#ground, entry, post, failure, jitter(this.#ground));
      }
    });
    wake.touch();
  }
}
