// What the store holds of the queues of hosts: where they lie, and which notices in them are still to be started.

export interface Releases {
  /** Where the newest process that rang one of these ids said that the host lies. */
  place(sessionIds: readonly string[]): HostPlace | undefined;
  recordPlace(row: HostPlace & { session_id: string; recorded_at: string }): void;
  open(row: Omit<ReleaseRow, 'checks'>): void;
  byDelivery(deliveryId: string): ReleaseRow | undefined;
  /** Those to be asked about now, the longest due first; also what a clock that was set back has moved far ahead. */
  due(nowMs: number, count: number): ReleaseRow[];
  checked(deliveryId: string, nextCheckMs: number): void;
  end(deliveryId: string): void;
  /** Whether a hand-off of this store left that submission in a queue. */
  isSubmission(submissionId: string): boolean;
}

/** One item of a host's queue. */
export interface QueueItem {
  id: string;
  /** What it would say; empty where it is no text. */
  text: string;
}

export interface QueuedNotice {
  thread_id: string;
  submission_id: string;
  /** Undefined where nobody said: the program that PATH finds, with its default home. */
  place: HostPlace | undefined;
}

/** What became of an item in the host's own queue that the host was asked to begin. */
export type ReleaseOutcome =
  | 'started'
  | 'taken'
  | 'busy'
  | 'foreign_input'
  | 'no_answer'
  | 'refused'
  | 'no_daemon';

/**
 * Asks the host of a thread to begin with exactly that notice, unless its queue holds something that is not ours. A throw
 * means that the question itself failed; after `abort` nobody looks at the answer.
 */
export type AskQueue = (
  notice: QueuedNotice,
  isOurs: (item: QueueItem) => boolean,
  abort: AbortSignal,
) => Promise<ReleaseOutcome>;

export interface HostPlace {
  /** The host's program: a path, or a name that PATH finds. */
  program: string;
  /** Its home; null where it uses its default. */
  home: string | null;
}

export interface ReleaseRow {
  delivery_id: string;
  session_id: string;
  thread_id: string;
  /** Null where the host named none. */
  submission_id: string | null;
  checks: number;
  next_check_ms: number;
  ends_ms: number;
}
