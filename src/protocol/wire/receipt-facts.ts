// Facts of a receipt: 26 bytes each, the message's id, the fact, its detail, the time.

import { assert } from '../assert.ts';
import { bytesOfUuid, concat, uint64At, uintBytes, uuidText } from './bytes.ts';
import { type Kind, listOf } from './field-kinds.ts';
import { wireLimits } from './limits.ts';
import type { ReceiptFact } from './record.ts';

type Fact = ReceiptFact['fact'];

/** By number, and the details of each by theirs. */
const facts: Readonly<
  Record<number, { kind: Fact['kind']; details: Readonly<Record<number, Fact['detail']>> }>
> = {
  1: { kind: 'stored', details: { 0: 'unknown', 1: 'live', 2: 'away', 3: 'deaf', 4: 'nearly_full' } },
  2: { kind: 'intake', details: { 1: 'fetched', 2: 'ingested' } },
  3: { kind: 'ack', details: { 0: 'ack' } },
  4: {
    kind: 'disposition',
    details: { 1: 'accepted', 2: 'rejected', 3: 'completed', 4: 'cancelled', 5: 'deferred' },
  },
  5: {
    kind: 'refused',
    details: {
      1: 'malformed',
      2: 'too_large',
      3: 'expired',
      4: 'reserved',
      5: 'unknown_field',
      6: 'policy',
      7: 'stale',
    },
  },
};

/** The two bytes of a fact and its detail. */
function factBytes({ kind, detail }: Fact): Uint8Array {
  for (const [number, row] of Object.entries(facts))
    if (row.kind === kind)
      for (const [detailNumber, known] of Object.entries(row.details))
        if (known === detail) return Uint8Array.of(Number(number), Number(detailNumber));
  throw new Error('invariant broken: a fact of a receipt is one of the list');
}

const bytesEach = 26;

const fact: Kind<ReceiptFact> = {
  read(bytes) {
    const row = facts[bytes[16] as number];
    const detail = row?.details[bytes[17] as number];
    const time = uint64At(bytes, 18);
    if (row === undefined || detail === undefined || time === undefined) return { refused: 'malformed' };
    const known = { kind: row.kind, detail } as Fact;
    return { value: { message_id: uuidText(bytes.subarray(0, 16)), fact: known, time_ms: time } };
  },
  write(value) {
    const id = bytesOfUuid(value.message_id);
    assert(id !== undefined, 'the id of a record is a lower-case UUID');
    assert(
      Number.isSafeInteger(value.time_ms) && value.time_ms >= 0,
      'a time of a record is whole milliseconds',
    );
    return concat([id, factBytes(value.fact), uintBytes(value.time_ms, 8)]);
  },
};

export const receiptFacts: Kind<readonly ReceiptFact[]> = listOf(fact, bytesEach, wireLimits.factsMax);
