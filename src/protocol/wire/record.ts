// What two identities tell each other, as values: one record is signed, sealed and sent as a whole. The bytes are made and read in
// `encode.ts` and `decode.ts`. Everything is text here, in the form in which it is stored and shown: keys in 43
// characters (base64url), ids of records as lower-case UUID, ids of devices and doors as 32 lower-case hex digits, times in Unix ms.

import type { MessageStatus, TargetKind } from '../message.ts';

export type RecordType = 'message' | 'receipt' | 'pair_request' | 'pair_accept' | 'route' | 'query' | 'card';

/** The fixed header: who says it to whom, when. All that is read before the gate knows the sender. */
export interface RecordHeader {
  type: RecordType;
  from: string;
  /** Of a card: nobody's (zeros), so undefined. */
  to: string | undefined;
  time_ms: number;
  id: string;
}

export interface MessageFields {
  project: string;
  recipient: string;
  target_kind: TargetKind;
  intended_session?: string;
  content_type: string;
  /** JSON text, as it was sent. */
  payload: string;
  status?: MessageStatus;
  task_id?: string;
  reply_to?: string;
  correlation_id?: string;
  sender: string;
  privacy: string;
  expires_at_ms: number;
  hops: number;
  root_id: string;
  /** Marks of 16 hex digits, newest last. */
  chain?: readonly string[];
  from_session?: string;
  from_device: string;
  quiet?: true;
}

export interface ReceiptFact {
  message_id: string;
  fact:
    | { kind: 'stored'; detail: 'unknown' | 'live' | 'away' | 'deaf' | 'nearly_full' }
    | { kind: 'intake'; detail: 'fetched' | 'ingested' }
    | { kind: 'ack'; detail: 'ack' }
    | { kind: 'disposition'; detail: 'accepted' | 'rejected' | 'completed' | 'cancelled' | 'deferred' }
    | { kind: 'refused'; detail: RefusedReason };
  time_ms: number;
}

export type RefusedReason =
  | 'malformed'
  | 'too_large'
  | 'expired'
  | 'reserved'
  | 'unknown_field'
  | 'policy'
  | 'stale';

export interface ReceiptFields {
  from_device: string;
  facts: readonly ReceiptFact[];
}

/** Where mail for an identity goes. */
export interface RouteFields {
  from_device: string;
  /** Origins of relays. */
  from_relays: readonly string[];
  /** Seal suites known, each one byte. */
  suites: readonly number[];
}

export interface PairRequestFields extends RouteFields {
  name: string;
}

export interface PairAcceptFields extends PairRequestFields {
  /** Id of the request that it answers. */
  request_id: string;
}

export interface QueryFields {
  from_device: string;
  ids: readonly string[];
}

export interface CardSession {
  session_id: string;
  principal: string;
  project: string;
  host_kind: string;
  directory: string;
  git: string;
  work_summary: string;
  bell: string;
  generation: number;
}

export interface CardFields {
  sessions: readonly CardSession[];
}

interface FieldsOf {
  message: MessageFields;
  receipt: ReceiptFields;
  pair_request: PairRequestFields;
  pair_accept: PairAcceptFields;
  route: RouteFields;
  query: QueryFields;
  card: CardFields;
}

/** One record: the type decides the fields. */
export type WireRecord = {
  [Type in RecordType]: Omit<RecordHeader, 'type'> & { type: Type; fields: FieldsOf[Type] };
}[RecordType];

/** Why fields are refused: what the sender is told, where he is told anything. */
export type FieldsRefusal = Extract<RefusedReason, 'malformed' | 'too_large' | 'reserved' | 'unknown_field'>;
