// What a relay and its clients agree on: forms, limits and codes of the HTTP interface (docs/spec/relay.md).

/** The version of items and requests that a relay takes. */
export const relayProtocols: readonly string[] = ['postbell-1'];

/** Key (32 bytes, base64url, re-encoding gives the same text) and device or door id. */
const queueForm = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\.[0-9a-f]{32}$/;
const itemIdForm = /^[0-9a-f]{32}$/;
/** 16 bytes, base64url. */
const tokenForm = /^[A-Za-z0-9_-]{21}[AQgw]$/;

export const isQueue = (text: unknown): text is string => typeof text === 'string' && queueForm.test(text);
export const isItemId = (text: unknown): text is string => typeof text === 'string' && itemIdForm.test(text);
export const isToken = (text: unknown): text is string => typeof text === 'string' && tokenForm.test(text);

/** The key of the identity that owns the queue. */
export const keyOfQueue = (queue: string): string => queue.slice(0, 43);

/** What may be said of a queue in a log or to a person. */
export const shortQueue = (queue: string): string => queue.slice(0, 8);

export const relayLimits = {
  itemBytesMax: 135_168,
  cardBytesMax: 65_536,
  /** Of a JSON body: 256 tokens with their delays take 16 KiB. */
  jsonBytesMax: 32_768,
  /** Of an answer, as its client reads it: 64 items, of which the last one may pass the mebibyte. */
  answerBytesMax: 8_388_608,
  uploadMs: 30_000,
  ttlSecondsMin: 60,
  ttlSecondsMax: 90_000,
  ttlSecondsDefault: 86_400,
  pollWaitMsMax: 55_000,
  pollWaitMsDefault: 25_000,
  pollCountMax: 64,
  pollCountDefault: 16,
  pollBytesMax: 1_048_576,
  pollsOfQueueMax: 4,
  settleCountMax: 256,
  deferSecondsMax: 3_600,
  leaseMs: 30_000,
  leasedOfQueueMax: 256,
  clockSkewMs: 60_000,
  nonceMs: 120_000,
  noncesMax: 1_000_000,
  /** Presence and card, since the last drain; then the registration with its items. */
  presenceMs: 259_200_000,
  registrationMs: 2_592_000_000,
  /** What a queue's age is at least taken back to after the relay was away. */
  ageAfterRestartMs: 90_000,
} as const;

/** How much a relay keeps; beyond it, senders keep theirs. Nothing stored is dropped to make room. */
export const relayQuotas = {
  queuesOfKeyMax: 16,
  queuesMax: 100_000,
  queue: { itemsMax: 1_024, bytesMax: 67_108_864 },
  door: { itemsMax: 64, bytesMax: 1_048_576 },
  store: { itemsMax: 1_000_000, bytesMax: 8_589_934_592 },
} as const;

/** The relay's own codes, and the HTTP status of each. */
export const relayStatus = {
  bad_request: 400,
  bad_item: 400,
  bad_signature: 401,
  clock: 401,
  forbidden: 403,
  not_found: 404,
  queue_unknown: 404,
  method_not_allowed: 405,
  too_large: 413,
  unsupported_media_type: 415,
  queue_limit: 429,
  queue_full: 429,
  relay_full: 503,
  store_unavailable: 503,
} as const;

export type RelayCode = keyof typeof relayStatus;
