// Items as anybody may make them who has a key, sound or not; and a gate of one machine without a relay in between.

import { type Signer, signerOf } from '../../src/crypto/ed25519.ts';
import { sealItem } from '../../src/crypto/sealed-item.ts';
import { type Admitted, Gate } from '../../src/peers/admit.ts';
import type { Arrival } from '../../src/peers/inspect.ts';
import type { ControlRecord } from '../../src/peers/pairing/take.ts';
import type { Via } from '../../src/protocol/gate.ts';
import { concat, uuidText } from '../../src/protocol/wire/bytes.ts';
import { encodeBody } from '../../src/protocol/wire/encode.ts';
import type { MessageFields, WireRecord } from '../../src/protocol/wire/record.ts';
import { seededRandom } from '../contract/clock.ts';
import { type Machine, seedOf } from './machines.ts';

const random = seededRandom(99);
export const freshId = (): string => uuidText(random.bytes(16));

/** Somebody whom nobody here knows. */
export const stranger: Signer = signerOf(seedOf(77));
export const strangersDevice = 'e'.repeat(32);

const week = 604_800_000;

/** What the fields of a message are where a test says nothing else. */
export function fieldsFrom(device: string, nowMs: number, over: Partial<MessageFields> = {}): MessageFields {
  return {
    project: 'shop',
    recipient: 'bob',
    target_kind: 'principal',
    content_type: 'text/plain',
    payload: '"hello bob"',
    sender: 'alice',
    privacy: 'private',
    expires_at_ms: nowMs + week,
    hops: 0,
    root_id: freshId(),
    from_device: device,
    ...over,
  };
}

export interface Forging {
  /** Of the header. */
  id?: string;
  timeMs?: number;
  to?: string;
  /** Changes the body before it is signed, or the record after that. */
  body?: (body: Uint8Array) => Uint8Array;
  record?: (record: Uint8Array) => Uint8Array;
  /** For which queue of the machine it is sealed; its device where nothing is said. */
  queueId?: string;
  item?: (item: Uint8Array) => Uint8Array;
}

/** Any record of `signer`, sealed to `to`. */
export function forged(
  to: Machine,
  signer: Signer,
  record: Pick<WireRecord, 'type' | 'fields'>,
  forging: Forging = {},
): Uint8Array {
  const same = (bytes: Uint8Array): Uint8Array => bytes;
  const header = {
    from: signer.key,
    to: forging.to ?? to.key,
    time_ms: forging.timeMs ?? to.clock.nowMs(),
    id: forging.id ?? freshId(),
  };
  const body = (forging.body ?? same)(encodeBody({ ...header, ...record } as WireRecord));
  const signed = (forging.record ?? same)(concat([body, signer.sign(body)]));
  const item = sealItem({
    record: signed,
    to: to.key,
    queueId: forging.queueId ?? to.device,
    ephemeral: random.bytes(32),
  });
  return (forging.item ?? same)(item);
}

/** A message of another machine, or of anybody. */
export const message = (
  to: Machine,
  from: Machine | Signer,
  over: Partial<MessageFields> = {},
  forging: Forging = {},
): Uint8Array => {
  const [signer, device] = 'identity' in from ? [from.identity, from.device] : [from, strangersDevice];
  return forged(
    to,
    signer,
    { type: 'message', fields: fieldsFrom(device, to.clock.nowMs(), over) } as never,
    forging,
  );
};

/** The bytes with one changed. */
export const flipped =
  (at: number, by = 1) =>
  (bytes: Uint8Array): Uint8Array => {
    const copy = Uint8Array.from(bytes);
    const index = at < 0 ? bytes.length + at : at;
    copy[index] = (copy[index] as number) ^ by;
    return copy;
  };

export interface Porch {
  gate: Gate;
  /** What passed to those who keep pairing and routes. */
  controls: ControlRecord[];
  /** From the device queue, all in one batch. */
  admit(...bodies: Uint8Array[]): Promise<Admitted>;
  admitVia(via: Via, ...bodies: Uint8Array[]): Promise<Admitted>;
  /** Refusals so far, by step. */
  counts(): Record<string, number>;
}

export function openGate(machine: Machine): Porch {
  const controls: ControlRecord[] = [];
  const gate = new Gate({
    ...machine,
    log: {
      info: (event, fields) => void machine.logged.push({ event, fields }),
      warn: (event, fields) => void machine.logged.push({ event, fields }),
    },
    control: async (record) => {
      controls.push(record);
      return 'done';
    },
  });
  const admitVia: Porch['admitVia'] = (via, ...bodies) => {
    const queueId = via === 'door' ? machine.door : machine.device;
    return gate.admit(bodies.map((body): Arrival => ({ body, via, queueId })));
  };
  return {
    gate,
    controls,
    admit: (...bodies) => admitVia('device', ...bodies),
    admitVia,
    counts: () =>
      Object.fromEntries(
        machine.store.read((tx) => tx.gate.counts()).map(({ step, count }) => [step, count]),
      ),
  };
}

/** What the machine is still to tell others. */
export const toldBy = (machine: Machine): Record<string, unknown>[] =>
  machine.rows('SELECT peer_key, device, wire_id, fact, detail FROM receipt_out ORDER BY seq');
