// The fields of a record: tag, name among the record's fields, kind, and in which types they stand. Adding one is a row here and a
// member in record.ts. The texts of a record, each at its largest, stay within 16,384 bytes together beside the payload: no sum is
// kept of them.

import { cardSessions } from './card-sessions.ts';
import {
  byte,
  claimedName,
  flag,
  hexOf,
  jsonText,
  type Kind,
  listOf,
  name,
  origins,
  recordId,
  text,
  time,
  word,
} from './field-kinds.ts';
import { wireLimits as limit } from './limits.ts';
import { receiptFacts } from './receipt-facts.ts';
import type { RecordType } from './record.ts';

export interface FieldRow {
  readonly tag: number;
  readonly name: string;
  readonly kind: Kind<unknown>;
  readonly required: readonly RecordType[];
  readonly optional: readonly RecordType[];
}

const pairing = ['pair_request', 'pair_accept'] as const;
const allButCard = ['message', 'receipt', ...pairing, 'route', 'query'] as const;

/** A row knows its kind; what walks over all rows does not. */
function required<T>(tag: number, called: string, kind: Kind<T>, types: readonly RecordType[]): FieldRow {
  return { tag, name: called, kind: kind as Kind<unknown>, required: types, optional: [] };
}

function optional<T>(tag: number, called: string, kind: Kind<T>): FieldRow {
  return { tag, name: called, kind: kind as Kind<unknown>, required: [], optional: ['message'] };
}

const message = ['message'] as const;
const id = text({ charactersMax: limit.idCharactersMax });
const statusWords = { 1: 'update', 2: 'needs_input', 3: 'result', 4: 'failed', 5: 'canceled' } as const;

/** In order of their tags. */
export const fieldRows: readonly FieldRow[] = [
  required(1, 'project', name, message),
  required(2, 'recipient', name, message),
  required(3, 'target_kind', word({ 1: 'principal', 2: 'session' }), message),
  optional(4, 'intended_session', name),
  required(5, 'content_type', text({ bytesMax: limit.contentTypeBytesMax }), message),
  required(6, 'payload', jsonText, message),
  optional(7, 'status', word(statusWords)),
  optional(8, 'task_id', id),
  optional(9, 'reply_to', recordId),
  optional(10, 'correlation_id', id),
  required(11, 'sender', text({ charactersMax: limit.senderCharactersMax }), message),
  required(12, 'privacy', text({ bytesMax: limit.privacyBytesMax }), message),
  required(13, 'expires_at_ms', time, message),
  required(14, 'hops', byte, message),
  required(15, 'root_id', recordId, message),
  optional(16, 'chain', listOf(hexOf(8), 8, limit.chainMarksMax)),
  optional(17, 'from_session', name),
  required(18, 'from_device', hexOf(16), allButCard),
  required(19, 'from_relays', origins, [...pairing, 'route']),
  optional(20, 'quiet', flag),
  required(32, 'name', claimedName, pairing),
  required(33, 'request_id', recordId, ['pair_accept']),
  required(34, 'suites', listOf(byte, 1, limit.suitesMax), [...pairing, 'route']),
  required(35, 'facts', receiptFacts, ['receipt']),
  required(36, 'ids', listOf(recordId, 16, limit.queryIdsMax), ['query']),
  required(37, 'sessions', cardSessions, ['card']),
];

/** Of the format, and in no record that is taken: a listing's door. Elsewhere it is misplaced. */
const listingTags = [38];

const byTag = new Map(fieldRows.map((row) => [row.tag, row]));

export const fieldRow = (tag: number): FieldRow | undefined => byTag.get(tag);

/** Whether the format has such a tag, taken or not. */
export const isTagOfFormat = (tag: number): boolean => byTag.has(tag) || listingTags.includes(tag);

/** What a type's fields may be, in order of their tags. */
export const rowsOf = (type: RecordType): readonly FieldRow[] =>
  fieldRows.filter((row) => row.required.includes(type) || row.optional.includes(type));
