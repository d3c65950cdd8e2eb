// What the store holds of other machines: messages on their way, what peers are still to be told, devices of peers, and
// what the gate refused.

import type { CardSession, ReceiptFact } from '../protocol/wire/record.ts';

export interface OutboxRow {
  seq: number;
  message_id: string;
  delivery_id: string;
  peer_key: string;
  wire_id: string;
  /** 32 hex digits. */
  secret: string;
  device: string | null;
  expires_ms: number;
  ended_at: string | null;
}

export interface OutboxPost {
  message_id: string;
  relay: string;
  device: string;
  attempts: number;
  /** In a row. */
  failures: number;
  /** How often the relay took it. */
  accepts: number;
  next_ms: number | null;
  accepted_ms: number | null;
  parked: boolean;
  last_error: string | null;
}

export interface Unanswered {
  peer_key: string;
  device: string;
  wire_ids: string[];
}

export interface Outbox {
  insert(
    row: Pick<OutboxRow, 'message_id' | 'peer_key' | 'wire_id' | 'secret' | 'expires_ms'> & { bytes: number },
  ): void;
  of(messageId: string): OutboxRow | undefined;
  byWireId(wireId: string): OutboxRow | undefined;
  /** Of what has not ended. */
  totals(): { count: number; bytes: number };
  /** What has not ended, oldest first; all of it, or of one peer. */
  open(count: number, peerKey?: string): OutboxRow[];
  /** Peers that something is open for. */
  peers(): string[];
  /** Entries that are on their way to no relay yet, oldest first, after the one of sequence `after`. */
  unrouted(count: number, after: number): OutboxRow[];
  expired(nowMs: number, count: number): OutboxRow[];
  route(messageId: string, device: string): void;
  /** Nothing is to be done at any relay any more. */
  end(messageId: string, at: string): void;
  post(messageId: string, relay: string): OutboxPost | undefined;
  posts(messageId: string): OutboxPost[];
  putPost(row: OutboxPost): void;
  /** They are to be made anew: for another device, or at other relays. */
  dropPosts(messageId: string): void;
  /**
   * What is to be posted at the relay by now and has not expired, oldest first; without what an older one for the same queue
   * holds up, which the relay did not take and which is not to be tried again yet.
   */
  due(relay: string, nowMs: number, count: number): (OutboxPost & OutboxRow)[];
  /** Relays that something is to be posted at. */
  relays(): string[];
  /** When something that has not expired is due next at the relay; undefined where nothing is. */
  nextDueMs(relay: string, nowMs: number): number | undefined;
  /** Makes due at once what a relay took for this device and is not known to be stored. */
  hurry(peerKey: string, device: string, nowMs: number): void;
  /** Makes due at once what is due after `beyondMs`: by a clock that was set back since. */
  hurryBeyond(beyondMs: number, nowMs: number): void;
  /**
   * What was sent since and is known to be stored, of which no acknowledgement came: the newest, at most `count` a device; none that
   * is known to have been refused.
   */
  unanswered(sinceMs: number, count: number): Unanswered[];
  /** Open entries that no relay has taken, oldest first. */
  pending(count: number): OutboxRow[];
}

export interface FactOut {
  seq: number;
  peer_key: string;
  device: string;
  wire_id: string;
  fact: ReceiptFact['fact']['kind'];
  detail: string;
  at_ms: number;
}

export interface FactsOut {
  /** Adding what is there already changes nothing. */
  add(row: Omit<FactOut, 'seq'>): void;
  /** Destinations that something is to be told. */
  destinations(): { peer_key: string; device: string }[];
  next(peerKey: string, device: string, count: number): FactOut[];
  remove(seqs: readonly number[]): void;
  /** Older than `beforeMs`, or of a peer that is none any more. */
  drop(of: { beforeMs: number } | { peer_key: string }): void;
}

export interface DeviceRow {
  peer_key: string;
  device: string;
  relays: readonly string[];
  suites: readonly number[];
  heard_ms: number;
  looked_ms: number | null;
  age_ms: number | null;
  gone: boolean;
  card_ms: number | null;
  sessions: readonly CardSession[];
}

export interface Devices {
  of(peerKey: string): DeviceRow[];
  get(peerKey: string, device: string): DeviceRow | undefined;
  /**
   * A verified record of it was signed at `heard_ms`. A route also says where it is reached; without one, or where a newer one said
   * it, what is known stays.
   */
  heard(row: {
    peer_key: string;
    device: string;
    heard_ms: number;
    route?: { relays: readonly string[]; suites: readonly number[] };
  }): void;
  looked(row: { peer_key: string; device: string; looked_ms: number; age_ms: number; gone: boolean }): void;
  card(row: { peer_key: string; device: string; card_ms: number; sessions: readonly CardSession[] }): void;
  forget(peerKey: string): void;
}

export interface Place {
  device: string;
  door: string;
}

export interface Places {
  /** Undefined before the first `set`. */
  get(): Place | undefined;
  set(place: Place): void;
  /** The queue is to be purged at every relay. */
  retire(queueId: string, at: string): void;
  retired(): string[];
  /** Undefined of one that is purged. */
  retiredAt(queueId: string): string | undefined;
  purged(queueId: string): void;
}

export interface Gate {
  refused(step: string, at: string): void;
  counts(): { step: string; count: number; last_at: string }[];
}

/** What an owner's inbox is: a principal in a project, or a session under all its ids. */
export interface InboxOwned {
  project: string;
  principal: string;
  sessions: readonly string[];
}

/** Bounds of what peers may leave here. */
export interface LinkRecords {
  insert(row: { delivery_id: string; peer_key: string; owner: string; bytes: number; sent_ms: number }): void;
  /**
   * What counts for the owner at the moment `at`. What was taken in or has expired, without an ack, and was sent before `beforeMs`
   * counts no more.
   */
  counted(peerKey: string, owner: string, beforeMs: number, at: string): { count: number; bytes: number };
  /** What came for this inbox while it counted for `from` counts for its owner from now on. */
  adopt(peerKey: string, to: { from: string; owner: string }, inbox: Partial<InboxOwned>): void;
  /** Replaces by tombstones what was acknowledged or superseded, does not wait and was sent before `beforeMs`. */
  prune(peerKey: string, owner: string, beforeMs: number, at: string): void;
}
