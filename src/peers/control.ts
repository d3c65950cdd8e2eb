// Pairing and route records on their way. A row holds what is to be said and never a signature: each attempt is signed afresh with
// its own time, so that a record may go out after any delay up to its expiry.

import type { ControlJob, ControlKind, PairRequestRow, Route } from '../ports/pairing.ts';
import type { Place } from '../ports/peers.ts';
import type { Random } from '../ports/random.ts';
import type { Tx } from '../ports/store.ts';
import { assert } from '../protocol/assert.ts';
import { Refusal } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { limits } from '../protocol/limits.ts';
import { uuidText } from '../protocol/wire/bytes.ts';
import type { WireRecord } from '../protocol/wire/record.ts';

/** A fresh id of a record, as text. */
export const newRecordId = (random: Random): string => uuidText(random.bytes(16));

export interface NewJob {
  kind: ControlKind;
  peer_key: string;
  /** Device or door. */
  queue: string;
  relays: readonly string[];
  record_id: string;
  request_id?: string;
  name?: string;
}

/** Puts it in the place of an earlier one of its kind to the same queue. `reserved`: its room is kept and nothing sent yet. */
export function putJob(
  tx: Tx,
  { random, nowMs, reserved = false }: { random: Random; nowMs: number; reserved?: boolean },
  { request_id, name, ...job }: NewJob,
): void {
  tx.pairing.jobs.put({
    ...job,
    request_id: request_id ?? null,
    name: name ?? null,
    secret: hex(random.bytes(16)),
    next_ms: reserved ? null : nowMs,
    expires_ms: nowMs + limits.controlKeptMs,
  });
}

/** Whether one more pairing record may be put, or takes the place of one. Refusal `outbox_full`. */
export function roomFor(tx: Tx, nowMs: number, { kind, peer_key, queue }: NewJob): Refusal | undefined {
  tx.pairing.jobs.expire(nowMs);
  if (tx.pairing.jobs.of(kind, peer_key, queue) !== undefined) return undefined;
  return tx.pairing.jobs.countOfPairing() < limits.controlJobsMax
    ? undefined
    : new Refusal('outbox_full', `${limits.controlJobsMax} pairing records wait to go out already`);
}

/** The answer to a request: sent where the one that asked said it is reached. */
export const confirmationOf = (
  asked: Pick<PairRequestRow, 'peer_key' | 'device' | 'relays' | 'request_id'>,
  record_id: string,
  name: string,
): NewJob => ({
  kind: 'pair_accept',
  peer_key: asked.peer_key,
  queue: asked.device,
  relays: asked.relays,
  record_id,
  request_id: asked.request_id,
  name,
});

/** @returns whether there was room for it */
export function putConfirmation(
  tx: Tx,
  made: { random: Random; nowMs: number },
  asked: Pick<PairRequestRow, 'peer_key' | 'device' | 'relays' | 'request_id'>,
  name: string,
): boolean {
  const job = confirmationOf(asked, newRecordId(made.random), name);
  if (roomFor(tx, made.nowMs, job) !== undefined) return false;
  putJob(tx, made, job);
  return true;
}

/** What is to be sent now, the oldest due first; what has expired is not among it. */
export const dueJobs = (tx: Tx, nowMs: number, count: number): ControlJob[] =>
  tx.pairing.jobs.due(nowMs, count);

/** When something is due next; undefined where nothing waits. */
export const nextJobMs = (tx: Tx, nowMs: number): number | undefined => tx.pairing.jobs.nextDueMs(nowMs);

/** What the records of this moment say of this account. */
export interface Says {
  nowMs: number;
  /** The own key. */
  key: string;
  place: Place;
  relays: readonly string[];
  suites: readonly number[];
}

export interface JobRecord {
  record: WireRecord;
  /** `<key>.<device or door>` */
  queue: string;
  /** Where that queue is; one acceptance is enough. */
  relays: readonly string[];
}

export function jobRecord(job: ControlJob, { nowMs, key, place, relays, suites }: Says): JobRecord {
  const header = { from: key, to: job.peer_key, time_ms: nowMs, id: job.record_id };
  const route = { from_device: place.device, from_relays: relays, suites };
  return {
    record: recordOf(job, header, route),
    queue: `${job.peer_key}.${job.queue}`,
    relays: job.relays,
  };
}

function recordOf(
  { kind, name, request_id }: ControlJob,
  header: { from: string; to: string; time_ms: number; id: string },
  route: { from_device: string; from_relays: readonly string[]; suites: readonly number[] },
): WireRecord {
  if (kind === 'route') return { ...header, type: kind, fields: route };
  assert(name !== null, 'a pairing record says a name');
  if (kind === 'pair_request') return { ...header, type: kind, fields: { ...route, name } };
  assert(request_id !== null, 'an acceptance says which request it answers');
  return { ...header, type: kind, fields: { ...route, name, request_id } };
}

/**
 * A relay has taken it, and keeps it for a day. A request, or where this account is reached, is sent again before that, until it is
 * answered or expires: the other machine may be off for longer. A confirmation is sent again when its request comes again.
 */
export function jobAccepted(tx: Tx, job: ControlJob, nowMs: number): void {
  if (!isSame(tx, job)) return;
  if (job.kind === 'pair_accept') tx.pairing.jobs.remove(job.seq);
  else tx.pairing.jobs.accepted(job.seq, { accepted_ms: nowMs, next_ms: nowMs + limits.controlRepeatMs });
}

/**
 * No relay took it: tried again after 2 s, then twice as long each time, 300 s at most, until it expires,
 * when nobody sends it any more.
 * @param jitter 0 to 1: as much of a fifth is added to the wait
 */
export function jobFailed(tx: Tx, job: ControlJob, nowMs: number, error: string, jitter: number): void {
  if (!isSame(tx, job)) return;
  const waitMs = Math.min(
    limits.controlRetryMsMin * 2 ** Math.min(job.attempts, 16),
    limits.controlRetryMsMax,
  );
  const jitterMs = Math.min((waitMs * jitter) / 5, limits.controlRetryMsMax - waitMs);
  tx.pairing.jobs.retry(job.seq, {
    attempts: job.attempts + 1,
    next_ms: Math.round(nowMs + waitMs + jitterMs),
    last_error: error,
  });
}

/** One that was replaced meanwhile is another job. */
const isSame = (tx: Tx, { kind, peer_key, queue, seq }: ControlJob): boolean =>
  tx.pairing.jobs.of(kind, peer_key, queue)?.seq === seq;

/** A job for each device of these keys that tells it where this account is reached from now on. */
export function putRoutes(tx: Tx, made: { random: Random; nowMs: number }, keys: readonly string[]): void {
  for (const peer_key of keys)
    for (const { device, relays } of tx.devices.of(peer_key))
      putJob(tx, made, {
        kind: 'route',
        peer_key,
        queue: device,
        relays,
        record_id: newRecordId(made.random),
      });
}

export const routeOf = (row: {
  from_device: string;
  from_relays: readonly string[];
  suites: readonly number[];
}): Route => ({
  device: row.from_device,
  relays: row.from_relays,
  suites: row.suites,
});
