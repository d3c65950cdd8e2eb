// What the store holds of messages: deliveries, what waits, tasks, fallbacks and receipts.

import type { MailEvent, ReceiptEvent, UnavailableReason } from '../protocol/delivery.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { Message, TargetKind } from '../protocol/message.ts';
import type {
  Fact,
  FactKind,
  MessageReceipt,
  MessageReceiptKind,
  OutboxFact,
  PeerFact,
} from '../protocol/receipts.ts';

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
  /** On the wire, of the message at the start of its chain of answers; absent at a start that was never sent away. */
  root_id?: string;
  /** When its payload was replaced by a tombstone. */
  tombstoned_at?: string;
  /** When it was stored here. */
  arrived_at: string;
}

export interface NewMessage {
  message: Message;
  /** The loop guard found that it needs no turn. */
  held: boolean;
  /** Absent of a peer's message, which its origin names. */
  idempotency?: { key: string; content_sha256: string };
  root_id?: string;
  /** When it was stored here, where that is not when it was made. */
  arrived_at?: string;
  payload: string;
  payload_sha256: string;
}

/** One message of a conversation. */
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
  /** By the verified key and the id that its sender gave it. */
  byOrigin(peerKey: string, originId: string): StoredMessage | undefined;
  /** The message that one of the sessions took in last, where it did so since. */
  newestTakenIn(sessionIds: readonly string[], since: string): StoredMessage | undefined;
  /** Keys of which a message of that id came. */
  originsOf(originId: string, count: number): string[];
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
   * When the newest messages of hop 1 or more of one sender session, by its ids (else sender label), to one recipient were made,
   * newest first, after `since` and not after `until`: what a clock that was set back left ahead counts for nothing.
   */
  automatic(
    pair: {
      project: string;
      recipient: string;
      sender: string;
      sessions?: readonly string[];
      /** Key of the machine that the recipient is on; absent: this one. */
      peer?: string;
    },
    window: { since: string; until: string },
    count: number,
  ): string[];
  /**
   * The same of what came from a peer, or from one session that it names; by the time of arrival. What was signed up to `signedSince`
   * is not looked at.
   */
  fromPeer(
    pair: { peer_key: string; session?: string; project: string; recipient: string },
    window: { since: string; until: string; signedSince: string },
    count: number,
  ): string[];
  /**
   * Both directions between an inbox and `peer`, by (time, message id), newest first. Out: what one of `senders` sent
   * to the peer, as label or as session. A local label is as it was given; its inbox in the form of all recipients.
   */
  history(
    inbox: Inbox,
    peer: { label: string; recipient: string } | { key: string },
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

/** Of whom hooks remind: by name in every project, and by session where that is live. */
export interface Reach {
  principals: readonly string[];
  /** Session ids for which mail to a principal may be intended. */
  intended: readonly string[];
  /** Session ids whose own mail counts, each with its project. */
  targets: readonly (readonly [project: string, sessionId: string])[];
  /** Session ids of which nothing counts that their live connection was handed whole. */
  pushedTo?: readonly string[];
}

/** How much waits in one project, for a principal or for the live session that is named. */
export interface WaitingGroup {
  project: string;
  session?: string;
  /** Attention-worthy. */
  unread: number;
  /** Progress or quiet. */
  progress: number;
}

export interface Reminders {
  groups(of: Reach): WaitingGroup[];
  /** What is attention-worthy after `after`, in order of arrival. */
  page(
    of: Reach,
    after: number,
    count: number,
  ): { seq: number; delivery_id: string; message_id: string; project: string }[];
  /** Whether one of the names was ever addressed or registered, in whatever project. */
  everSeen(names: readonly string[]): boolean;
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
   * Ends what the message, just inserted, supersedes in its scope (sender, sender session by its ids, task, inbox), and
   * the message itself where something newer is there already.
   */
  supersede(message: Message, senderSessions: readonly string[]): void;
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

export interface NewReceipt extends Omit<MessageReceipt, 'source'> {
  delivery_id: string;
}

export type NewLinkFact = (PeerFact | OutboxFact) & { delivery_id: string; idempotency_key: string };

export interface Receipts {
  find(delivery: string, kind: MessageReceiptKind, key: string): MessageReceipt | undefined;
  has(delivery: string, kind: FactKind): boolean;
  /** With an event for the sender. An intake also ends the waiting of its delivery. */
  insert(row: NewReceipt, eventId: string): void;
  /**
   * A fact of the link about a message that was sent away, with an event for the sender; once under its key, and of one
   * delivery no more than `limits.peerFactsMax` of a peer's.
   * @returns whether it was new
   */
  insertLinkFact(row: NewLinkFact, eventId: string): boolean;
  /** Every fact of the delivery in insertion order; observations of acceptances are left to the caller. */
  facts(delivery: string): FactRow[];
}

export type FactRow = Fact extends infer F
  ? F extends { delivery_state: unknown }
    ? Omit<F, 'delivery_state'>
    : F
  : never;
