// The queues of a relay as its server sees them. All ages are measured while the process runs, whatever somebody sets the
// wall clock to.

export interface QueueStore {
  /** Of this relay, for its description: random, made with the store. */
  readonly id: string;

  /** Makes a queue, or makes one that was closed live again; its owner counts as seen now. */
  register(queue: string, options: { door: boolean }): Promise<{ created: boolean } | QueueRefusal>;
  /** Marks it gone; with `purge` its registration, items and card go as well. False where there is no such queue. */
  remove(queue: string, options: { purge: boolean }): Promise<boolean>;
  /** Its owner drains it: seen now, and live. False where there is no such queue. */
  drain(queue: string): Promise<boolean>;

  /** Durable when it resolves to `accepted`. A `duplicate` is still queued under the same id. */
  post(queue: string, item: PostedItem): Promise<'accepted' | 'duplicate' | 'queue_unknown' | QueueRefusal>;
  /** Items that may be had now, each leased for 30 s; ends after passing `bytesMax` of bodies, with at least one. */
  lease(queue: string, options: { countMax: number; bytesMax: number }): Promise<Lease>;
  /**
   * Calls `then` once, when an item of the queue may be had that was not before; perhaps for nothing. What is committed
   * after this call is told. @returns takes the call back
   */
  watch(queue: string, then: () => void): () => void;
  /** A token of an item that is gone already counts as settled by `ack` and as unknown by `defer`. */
  settle(queue: string, what: Settlement): Promise<{ settled: number; unknown: number }>;

  /** An empty card removes it. False where there is no such queue. */
  putCard(queue: string, card: Uint8Array): Promise<boolean>;
  /** Undefined where there is no such queue, or its owner was not seen for three days. */
  presence(queue: string): Promise<Presence | undefined>;

  /** Removes what has had its time: items, presence, registrations. The caller runs it about once a minute. */
  sweep(): Promise<void>;
  /** The process stood still for a while: no owner could drain. */
  resumed(): void;
  /** Writes what is not written yet. Nothing may be called afterwards. */
  close(): Promise<void>;
}

/** Nothing was stored for want of room. */
export type QueueRefusal = 'queue_limit' | 'queue_full' | 'relay_full';

export interface PostedItem {
  /** 32 lower-case hex digits. */
  id: string;
  ttlMs: number;
  body: Uint8Array;
}

export interface Lease {
  items: HeldItem[];
  /** Whether others could be had at once. */
  more: boolean;
}

export interface HeldItem {
  token: string;
  id: string;
  ageMs: number;
  /** Of deliveries by this process, this one included. */
  attempt: number;
  body: Uint8Array;
}

export interface Settlement {
  ack: readonly string[];
  defer: readonly { token: string; delayMs: number }[];
}

export interface Presence {
  ageMs: number;
  gone: boolean;
  card: Uint8Array | undefined;
}
