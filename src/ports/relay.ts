// One relay, as a client of it sees it. It stores sealed items for queues until their owner has settled them; an acceptance says
// that a relay holds an item and nothing about its receiver.

/** Signs for this account's identity. */
export interface Signer {
  /** 43 characters, base64url: the key part of every queue of its own. */
  readonly key: string;
  /** @returns 64 bytes, Ed25519 (RFC 8032) */
  sign(bytes: Uint8Array): Uint8Array;
}

export interface Relay {
  /** Scheme, host and port, as it is listed. */
  readonly origin: string;
  /** By how much its clock is ahead of this machine's, as it said when it refused a request for its time; 0 until then. Absent where it never refuses for that. */
  aheadMs?(): number;
  describe(signal?: AbortSignal): Promise<RelayDescription>;
  /** Registers a queue of the own key, or makes one that was closed live again. */
  register(queue: string, options: { door: boolean }, signal?: AbortSignal): Promise<{ created: boolean }>;
  /** Marks it gone for presence; its items stay. With `purge` everything goes. */
  close(queue: string, options: { purge: boolean }, signal?: AbortSignal): Promise<void>;
  post(queue: string, item: RelayItem, signal?: AbortSignal): Promise<{ duplicate: boolean }>;
  /** Leases items of an own queue for 30 s; waits up to `wait_ms` for a first one. */
  poll(
    queue: string,
    options: { wait_ms: number; max: number },
    signal?: AbortSignal,
  ): Promise<{ items: LeasedItem[]; more: boolean }>;
  settle(
    queue: string,
    what: { ack: readonly string[]; defer: readonly { token: string; delay_s: number }[] },
    signal?: AbortSignal,
  ): Promise<{ settled: number; unknown: number }>;
  /** An empty card removes it. */
  putCard(queue: string, card: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Undefined where the relay knows no such queue. */
  card(queue: string, signal?: AbortSignal): Promise<QueuePresence | undefined>;
}

export interface RelayDescription {
  id: string;
  protocols: readonly string[];
  /** Its clock, Unix ms. */
  now_ms: number;
}

export interface RelayItem {
  /** 32 lower-case hex digits. */
  id: string;
  body: Uint8Array;
  ttl_s: number;
}

export interface LeasedItem {
  token: string;
  id: string;
  age_ms: number;
  attempt: number;
  body: Uint8Array;
}

export interface QueuePresence {
  /** Since its owner drained it last. */
  age_ms: number;
  gone: boolean;
  card: Uint8Array | undefined;
}

/**
 * What a call to a relay rejects with. `message` is one line for a person: it names the relay and what it did, never a
 * key, a whole queue name or a body.
 */
export class RelayFailure extends Error {
  /** `unreachable`: no answer of a relay came; `foreign`: what answers is no Postbell relay; `refused`: it said no. */
  readonly kind: 'unreachable' | 'foreign' | 'refused';
  readonly origin: string;
  /** HTTP status, where there is one. */
  readonly status: number | undefined;
  /** The relay's own code. */
  readonly code: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: RelayFailure['kind'],
    origin: string,
    message: string,
    more: { status?: number; code?: string; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = 'RelayFailure';
    this.kind = kind;
    this.origin = origin;
    this.status = more.status;
    this.code = more.code;
    this.retryAfterMs = more.retryAfterMs;
  }

  /** A relay's own word; the 404 of any other server says nothing of a queue. */
  get queueUnknown(): boolean {
    return this.kind === 'refused' && this.status === 404;
  }
}
