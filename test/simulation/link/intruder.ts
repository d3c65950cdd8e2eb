// A hostile network and hostile strangers: what was once posted is put in queues again, changed, or moved to another queue; and
// records are made with keys that nobody trusts, or with a peer's own key about what is none of its business.

import { signerOf } from '../../../src/crypto/ed25519.ts';
import { signRecord } from '../../../src/crypto/record.ts';
import { sealItem } from '../../../src/crypto/sealed-item.ts';
import type { Identity } from '../../../src/ports/account.ts';
import { hex } from '../../../src/protocol/id.ts';
import { uuidText } from '../../../src/protocol/wire/bytes.ts';
import type { WireRecord } from '../../../src/protocol/wire/record.ts';
import type { SimulatedRelay } from './relay.ts';
import type { LinkWorld } from './world.ts';

const itemsMax = 300;

interface Seen {
  queue: string;
  body: Uint8Array;
  record: WireRecord;
}

export class Intruder {
  readonly #world: LinkWorld;
  readonly #seen: Seen[] = [];
  readonly #strangers: Identity[];

  constructor(world: LinkWorld) {
    this.#world = world;
    this.#strangers = [201, 202].map((byte) => {
      const seed = new Uint8Array(32).fill(byte);
      return { ...signerOf(seed), seed };
    });
  }

  /** An item went over the wire. */
  sees(seen: Seen): void {
    this.#seen.push(seen);
    if (this.#seen.length > itemsMax) this.#seen.splice(this.#world.dice.below(itemsMax), 1);
  }

  act(): void {
    const { dice, relays, tally } = this.#world;
    if (this.#seen.length === 0) return;
    const seen = dice.pick(this.#seen);
    const relay = dice.pick(relays);
    const deed = dice.pick(['again', 'again', 'changed', 'moved', 'stranger', 'peer'] as const);
    tally.count(`intruder: ${deed}`);
    if (deed === 'again') this.#put(relay, seen.queue, seen.body);
    if (deed === 'changed') this.#put(relay, seen.queue, this.#changed(seen.body));
    if (deed === 'moved') this.#put(relay, dice.pick(this.#seen).queue, seen.body);
    if (deed === 'stranger') this.#forge(relay, seen, dice.pick(this.#strangers));
    if (deed === 'peer') this.#gossip(relay, seen);
  }

  #changed(body: Uint8Array): Uint8Array {
    const copy = Uint8Array.from(body);
    const at = this.#world.dice.below(copy.length);
    copy[at] = (copy[at] as number) ^ (1 << this.#world.dice.below(8));
    return copy;
  }

  /** The same record, from a key that nobody trusts; of a pairing record with another name. */
  #forge(relay: SimulatedRelay, { queue, record }: Seen, by: Identity): void {
    const { dice, elapsedMs } = this.#world;
    const fresh = dice.chance(0.5) ? uuidText(dice.bytes(16)) : record.id;
    const time_ms = record.time_ms + (dice.chance(0.5) ? 0 : elapsedMs % 60_000);
    const forged = { ...record, from: by.key, id: fresh, time_ms } as WireRecord & { to: string };
    this.#seal(relay, queue, forged, by);
  }

  /** A machine says of other people's mail that it was stored, read and done with. */
  #gossip(relay: SimulatedRelay, { queue, record }: Seen): void {
    const { dice, machines } = this.#world;
    if (record.type !== 'message') return;
    const liar = dice.pick(machines);
    const victim = machines.find(({ key }) => key === record.from);
    if (victim === undefined || liar.key === record.to || liar.key === record.from) return;
    const home = this.#seen.find((one) => one.queue.startsWith(`${victim.key}.`));
    if (home === undefined) return;
    const facts = (['stored', 'intake', 'ack', 'disposition', 'refused'] as const).map((kind) => ({
      message_id: record.id,
      time_ms: record.time_ms,
      fact: { kind, detail: details[kind] } as never,
    }));
    const told = {
      type: 'receipt' as const,
      from: liar.key,
      to: victim.key,
      time_ms: liar.nowMs(),
      id: uuidText(dice.bytes(16)),
      fields: { from_device: queue.split('.')[1] as string, facts },
    };
    this.#seal(relay, home.queue, told, liar.identity);
  }

  #seal(relay: SimulatedRelay, queue: string, record: WireRecord & { to: string }, by: Identity): void {
    const [to = '', queueId = ''] = queue.split('.');
    const sealed = {
      record: signRecord(record, by),
      to,
      queueId,
      ephemeral: this.#world.dice.bytes(32),
      suite: 1,
    };
    this.#put(relay, queue, sealItem(sealed));
  }

  #put(relay: SimulatedRelay, queue: string, body: Uint8Array): void {
    if (!relay.up || !relay.queues.has(queue)) return;
    try {
      relay.post(queue, { id: hex(this.#world.dice.bytes(16)), body, ttl_s: 3_600 });
    } catch {
      // Full: as good as lost.
    }
  }
}

const details = {
  stored: 'live',
  intake: 'ingested',
  ack: 'ack',
  disposition: 'completed',
  refused: 'policy',
};
