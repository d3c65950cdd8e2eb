// Events of exactly one inbox, without payload: recovery and diagnosis. Nothing is recorded but the cursor's name.

import type { MailEvent } from '../protocol/delivery.ts';
import { Fault, Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { PollRequest } from '../protocol/requests.ts';
import { type Desk, newId } from './desk.ts';
import { untilTouched } from './until-touched.ts';

export interface PollAnswer {
  project: string;
  recipient: string;
  events: MailEvent[];
  /** Null until a first event was seen and its place could be named. */
  next_cursor: string | null;
}

/** Waits up to `wait_ms` for a first event; `ended` stops the wait early. */
export async function poll(
  desk: Desk,
  request: PollRequest,
  ended?: AbortSignal,
): Promise<Result<PollAnswer>> {
  const { project, recipient, cursor } = request;
  const position =
    cursor === undefined
      ? 0
      : desk.store.read((tx) => tx.messages.cursorPosition(project, recipient, cursor));
  if (position === undefined)
    return new Refusal('invalid_cursor', 'no such cursor for this project and recipient');
  const limit = request.limit ?? limits.pollCountDefault;
  const read = () => desk.store.read((tx) => tx.messages.events(project, recipient, position, limit));
  let found = read();
  if (found.length === 0 && request.wait_ms !== undefined && request.wait_ms > 0)
    found = (await untilTouched(desk, request.wait_ms, () => nonEmpty(read()), ended)) ?? [];
  const last = found.at(-1)?.seq;
  const next = last === undefined ? cursor : await nameCursor(desk, request, last);
  return { project, recipient, events: found.map((row) => row.event), next_cursor: next ?? null };
}

/** The name of a position. Where none can be written, the old one stands: the same events are answered again. */
async function nameCursor(desk: Desk, { project, recipient, cursor }: PollRequest, position: number) {
  try {
    return await desk.store.write((tx) =>
      tx.messages.cursorToken(project, recipient, position, newId(desk, 'cur')),
    );
  } catch (error) {
    if (error instanceof Fault) return cursor;
    throw error;
  }
}

const nonEmpty = <T>(rows: T[]): T[] | undefined => (rows.length > 0 ? rows : undefined);
