// The store as the use cases see it: the one system of record. Rows keep their wire names.

import type { MailEvent, ReceiptEvent, UnavailableReason } from '../protocol/delivery.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { Message, TargetKind } from '../protocol/message.ts';
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
  readonly tasks: Tasks;
  readonly fallbacks: Fallbacks;
  readonly failures: Failures;
  readonly routers: Routers;
}

/** A message with what only the inside needs. */
export interface StoredMessage {
  message: Message;
  event_seq: number;
  /** Whether the delivery still needs intake: not taken in, superseded or expired. */
  waiting: boolean;
  /** Whether it is of the kind that wakes: neither progress, nor quiet, nor held by the loop guard. */
  attention: boolean;
  /** The loop guard found that it needs no turn. */
  held: boolean;
  /** The message that made it obsolete. */
  superseded_by?: string;
}

export interface NewMessage {
  message: Message;
  /** The loop guard found that it needs no turn. */
  held: boolean;
  idempotency_key: string;
  content_sha256: string;
  payload: string;
  payload_sha256: string;
}

/** One page of a conversation, newest first. */
export interface HistoryRow {
  stored: StoredMessage;
  direction: 'in' | 'out';
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
  /** Sequence of the newest event of the project; 0 where there is none. */
  lastEvent(project: string): number;
  /** Logical payload bytes of the whole store. */
  payloadBytes(): number;
  /** The first message of the project that answers `messageId` and is for one of these principals or sessions. */
  replyTo(
    project: string,
    messageId: string,
    to: { principals: readonly string[]; sessions: readonly string[] },
  ): Message | undefined;
  /**
   * When the newest messages of hop 1 or more of one sender session (else sender label) to one recipient were made,
   * newest first, after `since` and not after `until`: what a clock that was set back left ahead counts for nothing.
   */
  automatic(
    pair: { project: string; recipient: string; sender: string; session?: string },
    window: { since: string; until: string },
    count: number,
  ): string[];
  /**
   * Both directions between an inbox and `peer`, by (time, message id), newest first. Out: what one of `senders` sent
   * to the peer, as label or as session. A peer's label is as it was given; its inbox in the form of all recipients.
   */
  history(
    inbox: Inbox,
    peer: { label: string; recipient: string },
    senders: { labels: readonly string[]; sessions: readonly string[] },
    count: number,
  ): HistoryRow[];
  /** Events of one inbox after `position`, oldest first, with their sequence. */
  events(
    project: string,
    recipient: string,
    position: number,
    count: number,
  ): { seq: number; event: MailEvent }[];
  /** Receipts of what `sender` sent in the project after `position`, oldest first. */
  receiptEvents(
    project: string,
    sender: string,
    position: number,
    count: number,
  ): { seq: number; event: ReceiptEvent }[];
  /** The first event of this store, by its id, and the last one's sequence; undefined where there is none. */
  bounds(): { first: string; last: number } | undefined;
}

/** Whose mail: a session under all its ids and its principals, or a scope that a caller without a session named. */
export interface Inbox {
  project: string;
  principals: readonly string[];
  /** Session ids whose own mail counts. */
  targets: readonly string[];
  /** Session ids for which mail to a principal may be intended: to whichever, for it stays with its session. */
  intended: readonly string[];
  /** The caller named the recipient: mail to another one is not asked for, whoever it is intended for. */
  named: boolean;
}

export interface Waiting {
  /** The inboxes that most waits for, with how much. */
  inboxes(count: number): { recipient: string; project: string; waiting: number }[];
  /** The one answer to what waits: attention-worthy first, then the rest, each in order of arrival. */
  list(inbox: Inbox, count: number): StoredMessage[];
  /** All of it that is attention-worthy, in order of arrival. */
  worthy(inbox: Inbox): { delivery_id: string; created_at: string }[];
  /** How much of it is attention-worthy, and how much is progress or quiet. */
  counts(inbox: Inbox): { unread: number; progress: number };
  /** Other projects with attention-worthy mail for one of the principals that is intended for nobody else. */
  elsewhere(inbox: Inbox, count: number): { project: string; waiting: number }[];
  /** Deliveries of the inbox named by `messageIds`, waiting or not. */
  among(inbox: Inbox, messageIds: readonly string[]): Message[];
  /**
   * What a registration may be handed: attention-worthy principal deliveries with events in (after, through], without
   * acceptance, intended for nobody or for one of `sessions`; in event order.
   */
  undelivered(request: {
    project: string;
    principals: readonly string[];
    sessions: readonly string[];
    after: number;
    through: number;
    count: number;
  }): { delivery_id: string; event_seq: number }[];
}

/** Tasks: what a newer message makes obsolete, and what a session is known to work on. */
export interface Tasks {
  /**
   * Ends what the message, just inserted, supersedes in its scope (sender, sender session, task, inbox), and the
   * message itself where something newer is there already.
   */
  supersede(message: Message): void;
  mark(row: ProgressMarker): void;
  /** Of one session, or of every session of the project that has the task and whose inbox `recipient` is. */
  clear(of: { session_root: string; task_id?: string } | TaskEnd): void;
  /** Begins the time of the session's marker anew. */
  restart(sessionRoot: string, sinceMs: number): void;
  marker(sessionRoot: string): ProgressMarker | undefined;
}

export interface TaskEnd {
  project: string;
  task_id: string;
  target_kind: TargetKind;
  /** A principal, or the first id of a session. */
  recipient: string;
}

export interface ProgressMarker {
  session_root: string;
  project: string;
  principal_id: string | null;
  task_id: string;
  since_ms: number;
}

/** Messages to a principal in place of a session that refused. */
export interface Fallbacks {
  insert(row: FallbackRow): void;
  byDelivery(deliveryId: string): FallbackRow | undefined;
}

export interface FallbackRow {
  delivery_id: string;
  refused_delivery_id: string;
  reason: UnavailableReason | ErrorCode;
}

/** Notices that a host did not take. */
export interface Failures {
  /** An ordinary notice replaces the one of its session; others stand beside each other. */
  save(row: FailureRow): void;
  list(sessionRoot: string): FailureRow[];
  count(sessionRoot: string): number;
  byId(sessionRoot: string, id: string): FailureRow | undefined;
  remove(id: string): void;
  /** Ends the saved ordinary notice of the session. */
  clearSlot(sessionRoot: string): void;
}

export interface FailureRow {
  id: string;
  session_root: string;
  kind: 'notice' | 'message' | 'pairing';
  notification_id: string | null;
  message_id: string | null;
  sender: string;
  reason: string;
  text: string;
  recorded_at: string;
}

/** Which router runs, and which versions must not start again yet. */
export interface Routers {
  began(row: RouterRun): void;
  newest(): RouterRun | undefined;
  supersede(version: string, atMs: number): void;
  supersededAtMs(version: string): number | undefined;
}

export interface RouterRun {
  instance: string;
  pid: number;
  version: string;
  socket: string;
  started_at: string;
}

export interface NewReceipt extends Omit<MessageReceipt, 'source'> {
  delivery_id: string;
}

export interface Receipts {
  find(delivery: string, kind: MessageReceiptKind, key: string): MessageReceipt | undefined;
  has(delivery: string, kind: MessageReceiptKind): boolean;
  /** With an event for the sender. An intake also ends the waiting of its delivery. */
  insert(row: NewReceipt, eventId: string): void;
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
  connected_at: string;
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
  /** Whether one of `ids` was ever registered, in whatever project. */
  everRegistered(ids: readonly string[]): boolean;
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
  /** Changes nothing of a connection that has ended. */
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
  /** Of an earlier format: no notice, but a whole message in the text. */
  whole: boolean;
}

export interface Notices {
  newest(sessionRoot: string): Reservation | undefined;
  /** The newest one, if anything that it covers still waits. */
  newestCovering(sessionRoot: string): Omit<Reservation, 'covered'> | undefined;
  byId(notificationId: string): Reservation | undefined;
  open(row: Omit<Reservation, 'covered'>): void;
  cover(notificationId: string, deliveryIds: readonly string[]): void;
  setEnd(notificationId: string, rungAtMs: number, expiresAtMs: number): void;
  setState(notificationId: string, state: HandOffState): void;
  /** The hand-off of this delivery to the session failed: so did its newest reservation there, unless that was rung for. */
  fail(deliveryId: string, sessionIds: readonly string[]): void;
  /** All that the reservation covers has been rung for, or the one delivery. */
  markRung(notificationId: string, deliveryId?: string): void;
  /** The session's host was handed this delivery whole: rung for, and nothing else of its reservation is. */
  markPushed(deliveryId: string, sessionIds: readonly string[]): void;
  /** When the session was rung last, newest first. */
  rings(sessionRoot: string, count: number): number[];
  /** Whether a committed ring of this reservation was for the delivery. */
  isRung(notificationId: string, deliveryId: string): boolean;
  /** State of the newest reservation that covers the delivery; `preparing` until it was rung for. */
  handOffOf(deliveryId: string): HandOffState | undefined;
  /** The session's newest reservation that covers the delivery; mail to a principal has one in each of its sessions. */
  covering(deliveryId: string, sessionIds: readonly string[]): string | undefined;
}

/** Rows that the listener of a session prints, and how far it has. */
export interface Listener {
  append(row: { session_id: string; notification_id: string; text: string; created_at: string }): void;
  /** Rows of any of `ids` after `position`, oldest first. */
  rows(ids: readonly string[], position: number, count: number): ListenerRow[];
  cursor(sessionRoot: string): number;
  setCursor(sessionRoot: string, position: number): void;
  /** Removes rows of `ids` up to `position` that are older than `before` and whose records are all consumed. */
  prune(ids: readonly string[], position: number, before: string): void;
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
    | 'disposition'
    | 'activation'
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
