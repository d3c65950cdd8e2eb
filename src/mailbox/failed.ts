// Notices that a host did not take, as their session sees them. The schedule goes on without this: nothing here is
// needed for a message to be read, or to be rung for again.

import type { RingOutcome } from '../ports/bell.ts';
import type { FailureRow } from '../ports/ringing.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { utf8Bytes } from '../protocol/json.ts';
import type { FailedRequest } from '../protocol/requests.ts';
import type { Caller, Desk } from './desk.ts';
import { currentReservation } from './reserve.ts';

export interface FailedEntry {
  id: string;
  message_id?: string;
  notification_id?: string;
  sender: string;
  reason: string;
  /** Of the saved text. */
  bytes: number;
}

export type FailedAnswer = { failed: FailedEntry[] } | { text: string } | { done: true };

/** Rings the session once more: `ringAgain` over the bell that this process holds. Undefined where nothing waits. */
export type RingAgain = () => Promise<Result<RingOutcome | undefined>>;

type Ports = Pick<Desk, 'store' | 'clock' | 'wake'>;

/** @param ring absent in a process that holds no bell: the session's notifier is then made to ring at once */
export async function failed(
  desk: Ports,
  request: FailedRequest,
  caller: Caller,
  ring?: RingAgain,
): Promise<Result<FailedAnswer>> {
  const { session } = caller;
  if (session === undefined)
    return new Refusal('invalid_request', 'failed notices are kept per session, and this caller is none');
  const root = desk.store.read((tx) => tx.identity.chain(session))[0] as string;
  if (request.action === 'list')
    return { failed: desk.store.read((tx) => tx.failures.list(root)).map(entryOf) };
  const { id } = request;
  if (id === undefined)
    return new Refusal('invalid_request', `${request.action} needs an id`, { field: 'id' });
  const row = desk.store.read((tx) => tx.failures.byId(root, id));
  if (row === undefined) return new Refusal('not_found', 'no failed delivery of that id');
  if (request.action === 'read') return { text: row.text };
  if (request.action === 'discard') return remove(desk, id);
  if (row.kind !== 'notice') return new Refusal('invalid_request', 'only an ordinary notice is rung again');
  return ring === undefined ? endReservation(desk, root) : retry(desk, row, ring);
}

function entryOf({ id, message_id, notification_id, sender, reason, text }: FailureRow): FailedEntry {
  return {
    id,
    ...(message_id !== null && { message_id }),
    ...(notification_id !== null && { notification_id }),
    sender,
    reason,
    bytes: utf8Bytes(text),
  };
}

async function remove(desk: Ports, id: string): Promise<FailedAnswer> {
  await desk.store.write((tx) => tx.failures.remove(id));
  return { done: true };
}

async function retry(desk: Ports, { id }: FailureRow, ring: RingAgain): Promise<Result<FailedAnswer>> {
  const outcome = await ring();
  if (isRefusal(outcome)) return outcome;
  if (outcome === undefined || outcome.outcome === 'accepted') return remove(desk, id);
  const took =
    outcome.outcome === 'unknown' ? 'it is not known whether the host took it' : 'the host refused it';
  return new Refusal(outcome.code, `${took}; the schedule goes on`);
}

/** What waits is due now: the process that holds the session's notifier lock rings. */
async function endReservation(desk: Ports, root: string): Promise<Result<FailedAnswer>> {
  const refusal = await desk.store.write((tx) => {
    const nowMs = desk.clock.nowMs();
    const current = currentReservation(tx, root, nowMs);
    if (current?.state === 'preparing')
      return new Refusal('recipient_unavailable', 'a ring is being made just now', { reason: 'busy' });
    if (current !== undefined) tx.notices.setEnd(current.notification_id, current.rung_at_ms, nowMs);
    return undefined;
  });
  if (refusal !== undefined) return refusal;
  desk.wake.touch();
  return { done: true };
}
