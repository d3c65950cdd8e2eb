// Presence: the card of this machine goes to every own relay when it changes and at least every 12 hours; cards of peers are read where
// mail for them is not known to be stored.

import { signRecord } from '../../crypto/record.ts';
import { sealCard } from '../../crypto/sealed-card.ts';
import { ownSessions, takePresence } from '../../peers/card.ts';
import { youngest } from '../../peers/presence.ts';
import { relaysOf } from '../../peers/route.ts';
import type { Relay } from '../../ports/relay.ts';
import { describeError, isRefusal } from '../../protocol/errors.ts';
import { wireLimits } from '../../protocol/wire/limits.ts';
import { Alarm } from './alarm.ts';
import { freshId, isFailure, type LinkGround, queueOf, type Self } from './ground.ts';

const debounceMs = 5_000;
const lookMs = 60_000;
const anewMs = 12 * 3_600_000;

export class Cards {
  readonly #ground: LinkGround;
  readonly #self: Self;
  readonly #relay: (origin: string) => Relay;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  readonly #onLive: () => void;
  readonly #running: Promise<void>;
  /** What each own relay holds: the text of it, and since when. */
  readonly #held = new Map<string, { text: string; atMs: number }>();
  #lookedMs = Number.NEGATIVE_INFINITY;
  #changedMs: number | undefined;

  /** @param onLive told when a device of a peer came to be live, for which mail may wait */
  constructor(ground: LinkGround, self: Self, relay: (origin: string) => Relay, onLive: () => void) {
    this.#ground = ground;
    this.#self = self;
    this.#relay = relay;
    this.#onLive = onLive;
    this.#alarm = new Alarm(ground.clock);
    this.#running = this.#run();
  }

  /** Sessions or peers may have changed. */
  ring(): void {
    this.#changedMs ??= this.#ground.clock.elapsedMs();
    this.#alarm.ring();
  }

  async close(): Promise<void> {
    this.#alarm.end();
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    // The first one goes at once.
    this.#changedMs = this.#ground.clock.elapsedMs() - debounceMs;
    while (!this.#alarm.ended) {
      const nowMs = this.#ground.clock.elapsedMs();
      try {
        if (this.#changedMs !== undefined && nowMs - this.#changedMs >= debounceMs) await this.#upload();
        if (nowMs - this.#lookedMs >= lookMs) await this.#look();
      } catch (error) {
        this.#ground.log.warn('presence failed', { code: describeError(error).code });
      }
      await this.#alarm.sleep(this.#untilMs());
    }
  }

  #untilMs(): number {
    const nowMs = this.#ground.clock.elapsedMs();
    const look = this.#lookedMs + lookMs - nowMs;
    const upload = this.#changedMs === undefined ? lookMs : this.#changedMs + debounceMs - nowMs;
    return Math.max(50, Math.min(look, upload, lookMs));
  }

  /** To every relay that holds another one, or an old one. */
  async #upload(): Promise<void> {
    this.#changedMs = undefined;
    const { store, clock, relays, account } = this.#ground;
    const { identity, place } = this.#self;
    const policy = account.policy();
    if (isRefusal(policy)) return;
    const nowMs = clock.nowMs();
    const sessions = store.read((tx) => ownSessions(tx, nowMs));
    const heard = store.read(
      (tx) => new Map(policy.peers.map(({ key }) => [key, tx.devices.of(key)[0]?.heard_ms ?? 0])),
    );
    // The newest contacts first, where there are more peers than a card has room for.
    const recipients = [
      identity.key,
      ...policy.peers.map(({ key }) => key).sort((a, b) => (heard.get(b) ?? 0) - (heard.get(a) ?? 0)),
    ];
    const text = JSON.stringify([sessions, recipients.slice(0, wireLimits.cardRecipientsMax)]);
    const stale = relays.filter((origin) => {
      const held = this.#held.get(origin);
      return held === undefined || held.text !== text || clock.elapsedMs() - held.atMs >= anewMs;
    });
    if (stale.length === 0) return;
    const record = signRecord(
      {
        type: 'card',
        from: identity.key,
        to: undefined,
        time_ms: nowMs,
        id: freshId(this.#ground),
        fields: { sessions },
      },
      identity,
    );
    const card = sealed(
      record,
      recipients,
      { owner: identity.key, deviceId: place.device },
      this.#ground.random.bytes,
    );
    await Promise.all(stale.map((origin) => this.#put(origin, card, text)));
  }

  async #put(origin: string, card: Uint8Array, text: string): Promise<void> {
    const { identity, place } = this.#self;
    try {
      await this.#relay(origin).putCard(queueOf(identity.key, place.device), card, this.#abort.signal);
      this.#held.set(origin, { text, atMs: this.#ground.clock.elapsedMs() });
    } catch (error) {
      if (!isFailure(error)) throw error;
      // Again at the next look: the queue may not be registered yet.
      this.#changedMs ??= this.#ground.clock.elapsedMs();
    }
  }

  /** Where the devices are that mail is on its way to. */
  async #look(): Promise<void> {
    this.#lookedMs = this.#ground.clock.elapsedMs();
    // An old card is renewed at the same time.
    this.#changedMs ??= this.#lookedMs - debounceMs;
    const { store, relays } = this.#ground;
    const asked = store.read((tx) =>
      tx.outbox
        .peers()
        .flatMap((peer_key) =>
          tx.devices
            .of(peer_key)
            .map(({ device }) => ({ peer_key, device, origins: relaysOf(tx, peer_key, device, relays) })),
        ),
    );
    const live = await Promise.all(asked.map((one) => this.#lookAt(one)));
    if (live.includes(true)) this.#onLive();
  }

  async #lookAt({
    origins,
    ...of
  }: {
    peer_key: string;
    device: string;
    origins: readonly string[];
  }): Promise<boolean> {
    const { store, clock } = this.#ground;
    const said = await youngest(of, origins, this.#relay, this.#abort.signal);
    if (said.presence === undefined) return false;
    const { presence } = said;
    return store.write((tx) => {
      const live = takePresence(tx, of, this.#self.identity, presence, clock.nowMs());
      if (live) tx.outbox.hurry(of.peer_key, of.device, clock.nowMs());
      return live;
    });
  }
}

/** As many recipients as a card has room for. */
function sealed(
  record: Uint8Array,
  recipients: readonly string[],
  owner: { owner: string; deviceId: string },
  random: (count: number) => Uint8Array,
): Uint8Array {
  for (
    let count = Math.min(recipients.length, wireLimits.cardRecipientsMax);
    ;
    count = Math.floor(count * 0.9)
  ) {
    const card = sealCard({ ...owner, record, recipients: recipients.slice(0, count), random });
    if (typeof card !== 'string') return card;
  }
}
