// What the store holds of pairing: who asks, whom the operator asked, records on their way, and what sessions are rung for.

/** Where an identity is reached. */
export interface Route {
  device: string;
  relays: readonly string[];
  suites: readonly number[];
}

/** A stranger that asks to be admitted. */
export interface PairRequestRow extends Route {
  peer_key: string;
  request_id: string;
  /** Claimed. */
  name: string;
  arrived_ms: number;
  listed: boolean;
}

export interface PairRequests {
  /** In order of arrival. */
  all(): PairRequestRow[];
  of(peerKey: string): PairRequestRow | undefined;
  count(): number;
  /** Takes the place of an earlier one of the same key, and keeps whether that was listed. */
  put(row: Omit<PairRequestRow, 'listed'>): void;
  markListed(peerKeys: readonly string[]): void;
  remove(peerKey: string): void;
  /** Removes what arrived before. */
  expire(beforeMs: number): void;
}

/** A request that the operator made. */
export interface PairAskedRow {
  peer_key: string;
  request_id: string;
  /** The petname that he typed. */
  name: string;
  asked_ms: number;
}

export interface PairAsked {
  /** The oldest first. */
  all(): PairAskedRow[];
  of(peerKey: string): PairAskedRow | undefined;
  put(row: PairAskedRow): void;
  remove(peerKey: string): void;
  expire(beforeMs: number): void;
}

export type ControlKind = 'pair_request' | 'pair_accept' | 'route';

export interface ControlJob {
  seq: number;
  kind: ControlKind;
  peer_key: string;
  /** Device or door of the queue it goes to, 32 hex digits. */
  queue: string;
  relays: readonly string[];
  /** Of the record, the same at each attempt. */
  record_id: string;
  request_id: string | null;
  name: string | null;
  /** 32 hex digits. */
  secret: string;
  attempts: number;
  /** Null: only its room is reserved. */
  next_ms: number | null;
  expires_ms: number;
  last_error: string | null;
  /** When a relay took it last. */
  accepted_ms: number | null;
}

export interface ControlJobs {
  /** In order of making. */
  all(): ControlJob[];
  /** The oldest due first; also what a clock that was set back has moved far ahead. */
  due(nowMs: number, count: number): ControlJob[];
  /** When the next of those that have not expired is due. */
  nextDueMs(nowMs: number): number | undefined;
  /** Of pairing, what no relay has taken: routes are bounded by the devices of peers. */
  countOfPairing(): number;
  of(kind: ControlKind, peerKey: string, queue: string): ControlJob | undefined;
  /** Takes the place of an earlier one of its kind to the same queue. */
  put(job: Omit<ControlJob, 'seq' | 'attempts' | 'last_error' | 'accepted_ms'>): void;
  retry(seq: number, row: { attempts: number; next_ms: number; last_error: string }): void;
  /** A relay has it; it goes out again at `next_ms`. */
  accepted(seq: number, row: { accepted_ms: number; next_ms: number }): void;
  remove(seq: number): void;
  /** All to the key, or all of one kind to it. */
  removeTo(peerKey: string, kind?: ControlKind): void;
  expire(nowMs: number): void;
}

export interface PairingNotice {
  seq: number;
  kind: 'request' | 'conflict';
  peer_key: string;
  name: string | null;
}

export interface PairingNotices {
  /** For each of these sessions, or for the first that can be rung. */
  add(row: Omit<PairingNotice, 'seq'> & { sessions: readonly string[]; created_ms: number }): void;
  /** What the session is to be rung for, and what nobody has taken yet: of requests those that wait and were not listed. */
  waiting(sessionRoot: string): PairingNotice[];
  /** They are this session's now. */
  claim(seqs: readonly number[], sessionRoot: string): void;
  remove(seqs: readonly number[]): void;
  removeOf(peerKey: string): void;
  expire(beforeMs: number): void;
  /** Before that the session is not rung again; 0 where it never was. */
  pausedUntilMs(sessionRoot: string): number;
  pause(sessionRoot: string, untilMs: number): void;
  /** First ids of the sessions that are live now and have a bell. */
  audience(nowMs: number): string[];
}

export interface Pairing {
  readonly requests: PairRequests;
  readonly asked: PairAsked;
  readonly jobs: ControlJobs;
  readonly notices: PairingNotices;
  /** The route that peers were told last, as text; undefined before the first. */
  announced(): string | undefined;
  announce(route: string): void;
}
