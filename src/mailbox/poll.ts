// Events of exactly one inbox, or receipts of what one sender sent, without payload: recovery and diagnosis. Nothing is recorded.

import type { Tx } from '../ports/store.ts';
import type { MailEvent, ReceiptEvent } from '../protocol/delivery.ts';
import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { PollRequest } from '../protocol/requests.ts';
import { type CursorScope, nameCursor, readCursor } from './cursor.ts';
import type { Desk } from './desk.ts';
import { untilTouched } from './until-touched.ts';

export interface PollAnswer {
  project: string;
  recipient?: string;
  /** In place of the recipient where receipts were asked for. */
  sender?: string;
  events: (MailEvent | ReceiptEvent)[];
  /** Null until a first event was seen. */
  next_cursor: string | null;
}

/** Waits up to `wait_ms` for a first event; `ended` stops the wait early. */
export async function poll(
  desk: Pick<Desk, 'store' | 'clock' | 'wake'>,
  request: PollRequest,
  ended?: AbortSignal,
): Promise<Result<PollAnswer>> {
  const scope = scopeOf(request);
  if (isRefusal(scope)) return scope;
  const { cursor } = request;
  const position = cursor === undefined ? 0 : desk.store.read((tx) => readCursor(tx, scope, cursor));
  if (position === undefined) return new Refusal('invalid_cursor', 'no such cursor for this scope');
  const limit = request.limit ?? limits.pollCountDefault;
  const read = () => desk.store.read((tx) => eventsOf(tx, scope, position, limit));
  let found = read();
  if (found.length === 0 && request.wait_ms !== undefined && request.wait_ms > 0)
    found = (await untilTouched(desk, request.wait_ms, () => nonEmpty(read()), ended)) ?? [];
  const last = found.at(-1)?.seq;
  const next = last === undefined ? cursor : desk.store.read((tx) => nameCursor(tx, scope, last));
  const { project, side, name } = scope;
  return { project, [side]: name, events: found.map((row) => row.event), next_cursor: next ?? null };
}

/** A recipient, or with `receipts` a sender. */
function scopeOf({ project, recipient, sender, receipts }: PollRequest): Result<CursorScope> {
  const needed = receipts ? 'sender' : 'recipient';
  const name = receipts ? sender : recipient;
  const other = receipts ? recipient : sender;
  if (name === undefined) return new Refusal('invalid_request', `${needed} is required`, { field: needed });
  if (other !== undefined)
    return new Refusal(
      'invalid_request',
      `with${receipts ? '' : 'out'} receipts only ${needed} is accepted`,
      {
        field: receipts ? 'recipient' : 'sender',
      },
    );
  return { project, side: needed, name };
}

function eventsOf(
  tx: Tx,
  { project, side, name }: CursorScope,
  position: number,
  limit: number,
): { seq: number; event: MailEvent | ReceiptEvent }[] {
  return side === 'sender'
    ? tx.messages.receiptEvents(project, name, position, limit)
    : tx.messages.events(project, name, position, limit);
}

const nonEmpty = <T>(rows: T[]): T[] | undefined => (rows.length > 0 ? rows : undefined);
