// Queue release. A host may hold an accepted notice in its queue without ever beginning with it, as Codex does after an
// interrupted turn. Until the notice's intake the router asks the host every 20 s, for 10 min, to begin with exactly that
// item; the outcome is one fact. It says what became of the item in the queue, and nothing of reading.

import { newId, timestamp } from '../mailbox/desk.ts';
import type { Acceptance } from '../ports/presence.ts';
import type { AskQueue, HostPlace, QueueItem, ReleaseOutcome, ReleaseRow } from '../ports/releases.ts';
import type { Tx } from '../ports/store.ts';
import { isObject, type Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { noticesNamedIn } from '../protocol/notices.ts';
import type { activations } from '../protocol/receipts.ts';
import { recordPatiently } from './record.ts';
import type { Switchboard } from './switchboard.ts';

type Ports = Pick<Switchboard, 'store' | 'clock' | 'random' | 'wake'>;

const routerActor = 'postbell-router';

/** With the acceptance of a hand-off, in its transaction. */
export function openRelease(
  tx: Tx,
  { clock }: Pick<Ports, 'clock'>,
  { delivery_id, adapter_kind }: Acceptance,
  session_id: string,
  receipt: Json,
): void {
  if (adapter_kind !== 'codex-queue') return;
  const named = isObject(receipt) ? receipt : {};
  const nowMs = clock.nowMs();
  tx.releases.open({
    delivery_id,
    session_id,
    thread_id: textOf(named.thread_id) ?? session_id,
    submission_id: textOf(named.submission_id) ?? null,
    next_check_ms: nowMs + limits.releaseEveryMs,
    ends_ms: nowMs + limits.releaseWindowMs,
  });
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** By the process that rings the session: where the router finds its host. Nothing is written where it is known. */
export async function recordHostPlace(ports: Ports, session_id: string, place: HostPlace): Promise<void> {
  const known = ports.store.read((tx) => tx.releases.place([session_id]));
  if (known?.program === place.program && known.home === place.home) return;
  await ports.store.write((tx) =>
    tx.releases.recordPlace({ session_id, ...place, recorded_at: timestamp(ports) }),
  );
}

/** What is known once it was asked. `failed`: the question itself came to nothing. */
export type Asked = ReleaseOutcome | 'failed' | 'no_submission_id';

/**
 * One check of the rows of one notice that are due: an intake ends its row without a record, for the rest the host is asked,
 * once. After `abort` the rows stay as they are, for the next router.
 * @param onFault told why a question failed
 */
export async function checkRelease(
  ports: Ports,
  rows: readonly ReleaseRow[],
  { ask, abort, onFault }: { ask: AskQueue; abort: AbortSignal; onFault: (error: unknown) => void },
): Promise<void> {
  const open = ports.store.read((tx) => rows.find((row) => !tx.receipts.has(row.delivery_id, 'intake')));
  const asked = open === undefined ? undefined : await askFor(ports, open, ask, abort, onFault);
  if (abort.aborted) return;
  const recorded = await recordPatiently(ports, () =>
    ports.store.write((tx) => rows.map((row) => settle(tx, ports, row, asked)).includes(true)),
  );
  if (recorded) ports.wake.touch();
}

async function askFor(
  ports: Ports,
  { submission_id, thread_id, session_id }: ReleaseRow,
  ask: AskQueue,
  abort: AbortSignal,
  onFault: (error: unknown) => void,
): Promise<Asked> {
  if (submission_id === null) return 'no_submission_id';
  const place = ports.store.read((tx) => tx.releases.place(tx.identity.chain(session_id)));
  const isOurs = (item: QueueItem): boolean => ports.store.read((tx) => isOurItem(tx, item));
  try {
    return await ask({ thread_id, submission_id, place }, isOurs, abort);
  } catch (error) {
    if (!abort.aborted) onFault(error);
    return 'failed';
  }
}

/** Postbell's is what a hand-off left there, and a notice that this store made. */
const isOurItem = (tx: Tx, { id, text }: QueueItem): boolean =>
  tx.releases.isSubmission(id) ||
  noticesNamedIn(text).some((notice) => tx.notices.byId(notice) !== undefined);

/** @returns whether a fact was written */
function settle(tx: Tx, ports: Ports, row: ReleaseRow, asked: Asked | undefined): boolean {
  const { delivery_id } = row;
  // Another router may have ended it.
  if (tx.releases.byDelivery(delivery_id) === undefined) return false;
  // Its agent may have taken it in while the host was asked.
  if (asked === undefined || tx.receipts.has(delivery_id, 'intake')) {
    tx.releases.end(delivery_id);
    return false;
  }
  const nextMs = nextCheck(row, ports.clock.nowMs());
  if (!isFinal(asked) && nextMs !== undefined) {
    tx.releases.checked(delivery_id, nextMs);
    return false;
  }
  tx.releases.end(delivery_id);
  if (tx.receipts.has(delivery_id, 'host_activation')) return false;
  recordActivation(tx, ports, delivery_id, asked);
  return true;
}

const isFinal = (asked: Asked): boolean =>
  asked === 'started' || asked === 'taken' || asked === 'no_submission_id';

/** Every 20 s from the acceptance on, also where a check came late; undefined after the last one. */
function nextCheck({ checks, next_check_ms, ends_ms }: ReleaseRow, nowMs: number): number | undefined {
  const every = limits.releaseEveryMs;
  const missed = Math.max(0, Math.floor((nowMs - next_check_ms) / every));
  // A clock that was set back: time is counted by checks alone.
  const nextMs = nowMs < next_check_ms - every ? nowMs + every : next_check_ms + (missed + 1) * every;
  return nextMs > ends_ms || checks + 1 >= limits.releaseWindowMs / every ? undefined : nextMs;
}

interface Activation {
  value: (typeof activations)[number];
  detail: { codex_queue: string } | { reason: string };
}

const activationOf: Readonly<Record<Asked, Activation>> = {
  started: { value: 'woken', detail: { codex_queue: 'started' } },
  taken: { value: 'woken', detail: { codex_queue: 'empty' } },
  foreign_input: { value: 'manual_resume_required', detail: { reason: 'foreign_input' } },
  no_daemon: { value: 'unsupported', detail: { reason: 'no_daemon' } },
  busy: { value: 'failed', detail: { reason: 'busy' } },
  no_answer: { value: 'failed', detail: { reason: 'timeout' } },
  refused: { value: 'failed', detail: { reason: 'rejected' } },
  failed: { value: 'failed', detail: { reason: 'failed' } },
  no_submission_id: { value: 'failed', detail: { reason: 'no_submission_id' } },
};

function recordActivation(tx: Tx, ports: Ports, delivery_id: string, asked: Asked): void {
  const { value, detail } = activationOf[asked];
  tx.receipts.insert(
    {
      receipt_id: newId(ports, 'rcp'),
      delivery_id,
      receipt_kind: 'host_activation',
      value,
      actor: routerActor,
      idempotency_key: routerActor,
      detail: JSON.stringify(detail),
      recorded_at: timestamp(ports),
    },
    newId(ports, 'evt'),
  );
}
