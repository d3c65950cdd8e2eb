// Asks peers for what they recorded of messages whose facts may have been lost on the way: a relay keeps a receipt for a day, and this
// machine may have been away for longer.

import { itemId } from '../../crypto/item-id.ts';
import { isTrusted } from '../../peers/who.ts';
import type { Unanswered } from '../../ports/peers.ts';
import type { Relay } from '../../ports/relay.ts';
import { describeError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { wireLimits } from '../../protocol/wire/limits.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';
import { Alarm } from './alarm.ts';
import { freshId, type LinkGround, type Self, sealedFor } from './ground.ts';
import { postAt, wayTo } from './post.ts';

/** A relay keeps what it took for a day: what has not come within it may be lost. */
const everyMs = 86_400_000;
const firstMs = 120_000;

export class Queries {
  readonly #ground: LinkGround;
  readonly #self: Self;
  readonly #relay: (origin: string) => Relay;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;

  constructor(ground: LinkGround, self: Self, relay: (origin: string) => Relay) {
    this.#ground = ground;
    this.#self = self;
    this.#relay = relay;
    this.#alarm = new Alarm(ground.clock);
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#alarm.end();
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    await this.#alarm.sleep(firstMs);
    while (!this.#alarm.ended) {
      try {
        await this.#round();
      } catch (error) {
        if (this.#alarm.ended) return;
        this.#ground.log.warn('peers were not asked', { code: describeError(error).code });
      }
      await this.#alarm.sleep(everyMs);
    }
  }

  async #round(): Promise<void> {
    const { clock, store } = this.#ground;
    const since = clock.nowMs() - limits.peerExpiryMs;
    const unanswered = store.read((tx) => tx.outbox.unanswered(since, wireLimits.queryIdsMax));
    for (const key of new Set(unanswered.map(({ peer_key }) => peer_key)))
      await this.#askPeer(
        key,
        unanswered.filter(({ peer_key }) => peer_key === key),
      );
  }

  /**
   * Where a machine has left its queue, the one that was heard of last may be the same under a new name. That one is asked last,
   * and for all of it at once: it answers once a minute.
   */
  async #askPeer(peer_key: string, all: readonly Unanswered[]): Promise<void> {
    const device = this.#ground.store.read((tx) => tx.devices.of(peer_key))[0]?.device;
    const left: string[] = [];
    for (const one of all) if (one.device !== device && !(await this.#ask(one))) left.push(...one.wire_ids);
    if (device === undefined) return;
    const own = all.find((one) => one.device === device)?.wire_ids ?? [];
    const wire_ids = [...own, ...left].slice(0, wireLimits.queryIdsMax);
    if (wire_ids.length > 0) await this.#ask({ peer_key, device, wire_ids });
  }

  /** @returns whether a relay took it */
  async #ask({ peer_key, device, wire_ids }: Unanswered): Promise<boolean> {
    const { account, clock, random } = this.#ground;
    const { identity, place } = this.#self;
    const nowMs = clock.nowMs();
    const record: WireRecord & { to: string } = {
      type: 'query',
      from: identity.key,
      to: peer_key,
      time_ms: nowMs,
      id: freshId(this.#ground),
      fields: { from_device: place.device, ids: wire_ids },
    };
    const { queue, origins, suite } = wayTo(this.#ground, { peer_key, device });
    if (suite === undefined) return false;
    const body = sealedFor(this.#ground, record, identity, { id: device, suite });
    const id = itemId({ secret: random.bytes(16), queue, signedAtMs: nowMs });
    const item = { id, body, ttl_s: everyMs / 1_000 };
    for (const origin of origins) {
      // The one before may have taken half a minute not to answer.
      if (!isTrusted({ account, own: identity.key }, peer_key)) return false;
      const failure = await postAt(this.#relay(origin), queue, item, this.#abort.signal);
      if (failure === undefined) return true;
    }
    return false;
  }
}
