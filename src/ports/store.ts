// The store as the use cases see it: the one system of record. Rows keep their wire names.

import type { MailEvent } from '../protocol/delivery.ts';
import type { Message } from '../protocol/message.ts';
import type { Reservation } from '../protocol/notices.ts';
import type { AttemptState, Fact, MessageReceipt, MessageReceiptKind } from '../protocol/receipts.ts';
import type {
  AdapterKind,
  Bell,
  Card,
  DisconnectReason,
  HostKind,
  Registration,
} from '../protocol/session.ts';
import type { HandOffState } from '../protocol/states.ts';

export interface Store {
  /** Runs `work` in one snapshot. Throws Fault `store_unreadable`, or `store_busy` where even reading must wait. */
  read<T>(work: (tx: Tx) => T): T;
  /**
   * Runs `work` in one immediate transaction, durable (synchronous=FULL) when the promise resolves. A throw rolls
   * back. Waits for the write lock without blocking the process; Fault `store_busy` after 5 s, `store_full`,
   * `store_unwritable`. `work` may run more than once: it must not have effects outside the transaction.
   */
  write<T>(work: (tx: Tx) => T): Promise<T>;
  /** Whether another connection has committed since the last call (the first call answers true). */
  changed(): boolean;
  close(): void;
}

export interface Tx {
  readonly messages: Messages;
  readonly waiting: Waiting;
  readonly receipts: Receipts;
  readonly sessions: Sessions;
  readonly attempts: Attempts;
  readonly notices: Notices;
  readonly listener: Listener;
  readonly identity: Identity;
  readonly feed: Feed;
}

/** A message with what only the inside needs. */
export interface StoredMessage {
  message: Message;
  /** Whether the delivery still needs intake. */
  waiting: boolean;
  event_seq: number;
}

export interface NewMessage {
  message: Message;
  idempotency_key: string;
  content_sha256: string;
  payload: string;
  payload_sha256: string;
}

export interface Messages {
  /** Inserts message, delivery, event and idempotency record: one row each. */
  insert(row: NewMessage): void;
  byIdempotencyKey(
    project: string,
    sender: string,
    key: string,
  ): { content_sha256: string; message_id: string } | undefined;
  byId(messageId: string): StoredMessage | undefined;
  byDelivery(deliveryId: string): StoredMessage | undefined;
  /** Compact JSON and its hash; absence is a defect. */
  payload(messageId: string): { json: string; sha256: string };
  /** Events of one inbox after `position`, oldest first, with their sequence. */
  events(
    project: string,
    recipient: string,
    position: number,
    count: number,
  ): { seq: number; event: MailEvent }[];
  cursorPosition(project: string, recipient: string, token: string): number | undefined;
  /** The token of a position: the same one each time. */
  cursorToken(project: string, recipient: string, position: number, newToken: string): string;
}

/** Whose mail: a session under all its ids and its principals, or a scope that a caller without a session named. */
export interface Inbox {
  project: string;
  principals: readonly string[];
  /** Session ids whose own mail counts. */
  targets: readonly string[];
  /** Session ids for which mail to a principal may be intended. */
  intended: readonly string[];
}

export interface Waiting {
  /** The inboxes that most waits for, with how much. */
  inboxes(count: number): { recipient: string; project: string; waiting: number }[];
  /** The one answer to what waits: attention-worthy first, then the rest, each in order of arrival. */
  list(inbox: Inbox, count: number): Message[];
  counts(inbox: Inbox): { unread: number; progress: number };
  /** Deliveries of the inbox named by `messageIds`, waiting or not. */
  among(inbox: Inbox, messageIds: readonly string[]): Message[];
}

export interface NewReceipt extends Omit<MessageReceipt, 'source'> {
  delivery_id: string;
}

export interface Receipts {
  find(delivery: string, kind: MessageReceiptKind, key: string): MessageReceipt | undefined;
  has(delivery: string, kind: MessageReceiptKind): boolean;
  /** An intake also ends the waiting of its delivery. */
  insert(row: NewReceipt): void;
  /** Every fact of the delivery in insertion order; observations of acceptances are left to the caller. */
  facts(delivery: string): FactRow[];
}

export type FactRow = Fact extends infer F
  ? F extends { delivery_state: unknown }
    ? Omit<F, 'delivery_state'>
    : F
  : never;

export interface SessionRow {
  project: string;
  session_id: string;
  principal_id: string;
  adapter_kind: AdapterKind;
  bell: Bell;
  host_kind: HostKind;
  generation: number;
}

export interface ConnectionRow extends ConnectionSummary {
  router_instance: string;
  lease_expires_at_ms: number;
  disconnect_reason: DisconnectReason | null;
}

export interface ConnectionSummary {
  connection_id: string;
  project: string;
  session_id: string;
  generation: number;
  principal_id: string;
  adapter_kind: AdapterKind;
  bell: Bell;
}

export interface Sessions {
  /** The newest registration record among `ids`, live or not. */
  registered(project: string, ids: readonly string[]): SessionRow | undefined;
  /** Of each session that ever was registered under the principal, its newest connection under it. */
  connectionsOf(project: string, principal: string): ConnectionRow[];
  /** Projects where a session with a bell is live under the principal. */
  projectsOf(principal: string, nowMs: number): string[];
  /** The newest live connection of any of `ids`. */
  live(project: string, ids: readonly string[], nowMs: number): ConnectionRow | undefined;
  /** Every live connection of `ids`, the newest first: more than one where ids were linked while both were live. */
  allLive(project: string, ids: readonly string[], nowMs: number): ConnectionRow[];
  /** The newest live connection of the principal that has a bell. */
  liveOfPrincipal(project: string, principal: string, nowMs: number): ConnectionRow | undefined;
  connection(connectionId: string): ConnectionRow | undefined;
  /** The last connection of the newest registration among `ids`. */
  last(project: string, ids: readonly string[]): ConnectionRow | undefined;
  cards(project: string, nowMs: number, count: number): Card[];
  /** Writes session, connection and presence; on the first one also the principal with its checkpoint. */
  connect(row: {
    registration: Registration;
    connection_id: string;
    generation: number;
    router_instance: string;
    lease_expires_at_ms: number;
    at: string;
  }): void;
  checkpoint(project: string, principal: string): number | undefined;
  renew(connectionId: string, leaseExpiresAtMs: number, workSummary: string | undefined): void;
  disconnect(connectionId: string, reason: DisconnectReason, at: string): void;
  /** Open connections, optionally of other router instances than the given one. */
  open(exceptRouter?: string): ConnectionRow[];
}

export interface AttemptRow {
  attempt_id: string;
  delivery_id: string;
  connection_id: string;
  router_instance: string;
  state: AttemptState;
  failure_code: string | null;
}

export interface Acceptance {
  host_accept_id: string;
  delivery_id: string;
  attempt_id: string;
  content: 'full' | 'notice';
  adapter_kind: AdapterKind;
  /** JSON text. */
  receipt: string;
  accepted_at: string;
}

export interface Attempts {
  /** Numbers it and writes it as `started`. */
  start(row: {
    attempt_id: string;
    delivery_id: string;
    connection_id: string;
    router_instance: string;
    at: string;
  }): void;
  byId(attemptId: string): AttemptRow | undefined;
  /** Only an unfinished attempt is finished. */
  finish(attemptId: string, state: AttemptState, failureCode: string | undefined, at: string): void;
  unfinishedOf(connectionId: string): AttemptRow[];
  accept(row: Acceptance): void;
  acceptanceOf(deliveryId: string): Acceptance | undefined;
}

export interface ListenerRow {
  seq: number;
  notification_id: string;
  text: string;
  /** Whether anything its notice covers still waits. */
  waiting: boolean;
}

export interface Notices {
  newest(sessionRoot: string): Reservation | undefined;
  byId(notificationId: string): Reservation | undefined;
  open(row: Omit<Reservation, 'covered'>): void;
  cover(notificationId: string, deliveryIds: readonly string[]): void;
  setEnd(notificationId: string, rungAtMs: number, expiresAtMs: number): void;
  setState(notificationId: string, state: HandOffState): void;
  /** The hand-off of this delivery failed: so did its newest reservation, unless that was rung for. */
  fail(deliveryId: string): void;
  /** All that the reservation covers has been rung for. */
  markRung(notificationId: string): void;
  /** Whether a committed ring of this reservation was for the delivery. */
  isRung(notificationId: string, deliveryId: string): boolean;
  /** State of the newest reservation that covers the delivery; `preparing` until it was rung for. */
  handOffOf(deliveryId: string): HandOffState | undefined;
}

/** Rows that the listener of a session prints, and how far it has. */
export interface Listener {
  append(row: { session_id: string; notification_id: string; text: string; created_at: string }): void;
  /** Rows of any of `ids` after `position`, oldest first. */
  rows(ids: readonly string[], position: number, count: number): ListenerRow[];
  cursor(sessionRoot: string): number;
  setCursor(sessionRoot: string, position: number): void;
}

export interface LauncherRow {
  pid: number;
  start_time: string;
  session_id: string;
}

/** Which ids name one session. */
export interface Identity {
  /** Every id of the session, the first of its chain first; at least `id` itself. */
  chain(id: string): string[];
  link(newId: string, oldId: string): void;
  launcher(pid: number): LauncherRow | undefined;
  recordLauncher(row: LauncherRow, at: string): void;
}

/** What happened, for the live view; payload-free. */
export interface FeedItem {
  at: string;
  kind:
    | 'message'
    | 'attempt'
    | 'host_accept'
    | 'notice'
    | 'intake'
    | 'ack'
    | 'connected'
    | 'disconnected'
    | 'superseded';
  message_id?: string;
  project: string;
  /** sender or session. */
  from?: string;
  to: string;
  detail: string;
}

export type FeedPosition = Readonly<
  Record<'message' | 'attempt' | 'host_accept' | 'listener_row' | 'receipt' | 'presence', number>
>;

export interface Feed {
  end(): FeedPosition;
  since(position: FeedPosition): { items: FeedItem[]; position: FeedPosition };
}
