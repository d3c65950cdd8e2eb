// Asks Codex to begin with exactly one item of a thread's queue, and only where nothing waits there that is not Postbell's:
// Codex runs the rest of the queue after it.

import type { Clock } from '../../ports/clock.ts';
import type { QueueItem, ReleaseOutcome } from '../../ports/releases.ts';
import { Fault } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json.ts';
import {
  type AppServer,
  connectAppServer,
  endedWords,
  idOf,
  type Reply,
  type RpcError,
} from './app-server.ts';
import { openProxy } from './proxy.ts';

/** An item has at most a million characters; a queue at most 100 items. */
const itemsPerPage = 10;
const pagesMax = 20;
/** How often it is listed until two lists agree. */
const listsMax = 4;
/** A server that is overloaded is as busy as a thread. */
const overloaded = -32001;

export interface Submission {
  thread_id: string;
  submission_id: string;
}

export interface Way {
  program: string;
  /** The whole environment of the proxy. */
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  /** For all of it. */
  waitMs: number;
  abort: AbortSignal;
}

/** Through a proxy that is started for this one question. Throws a Fault where the question could not be asked. */
export async function askThroughProxy(
  { program, environment, clock, waitMs, abort }: Way,
  submission: Submission,
  isOurs: (item: QueueItem) => boolean,
): Promise<ReleaseOutcome> {
  const proxy = openProxy(program, environment);
  let isLate = false;
  const cancel = clock.after(waitMs, () => {
    isLate = true;
    proxy.end();
  });
  abort.addEventListener('abort', proxy.end);
  try {
    const server = await connectAppServer(proxy.stream, { clock, waitMs });
    if (typeof server === 'object') return await releaseSubmission(server, submission, isOurs);
    if (server === 'refused') return 'refused';
    if (server === 'closed' && (await proxy.ended) === 'no_daemon') return 'no_daemon';
    if (server === 'timeout') return 'no_answer';
    throw new Fault('adapter_error', 'the way to the app-server broke');
  } catch (error) {
    if (isLate) return 'no_answer';
    throw error;
  } finally {
    cancel();
    abort.removeEventListener('abort', proxy.end);
    proxy.end();
  }
}

export async function releaseSubmission(
  server: AppServer,
  { thread_id, submission_id }: Submission,
  isOurs: (item: QueueItem) => boolean,
): Promise<ReleaseOutcome> {
  const items = await settledQueue(server, thread_id);
  if (typeof items === 'string') return items;
  if (!items.some(({ id }) => id === submission_id)) return 'taken';
  if (!items.every(isOurs)) return 'foreign_input';
  const begun = await server.request('thread/queue/start', {
    threadId: thread_id,
    queuedSubmissionId: submission_id,
  });
  if ('result' in begun) {
    if (idOf(begun.result.turn) !== undefined) return 'started';
    throw new Fault('adapter_error', 'the app-server named no turn that it began');
  }
  if ('error' in begun && isGone(begun.error)) return 'taken';
  return failureOf(begun);
}

const isGone = ({ code, message }: RpcError): boolean =>
  code === -32600 && /^(?:queue is empty|queued submission not found)\b/.test(message);
const isBusy = ({ code, message }: RpcError): boolean =>
  code === overloaded || (code === -32600 && /active or pending turn/.test(message));

/** A server without the method, or one that refuses it to this client, has refused. */
function failureOf(reply: Exclude<Reply, { result: unknown }>): ReleaseOutcome {
  if ('error' in reply) return isBusy(reply.error) ? 'busy' : 'refused';
  if (reply.lost === 'timeout') return 'no_answer';
  throw new Fault('adapter_error', `the app-server ${endedWords[reply.lost]}`);
}

/**
 * The queue as it is at one time: while it is read page by page Codex may take items from it, and what comes after them slips
 * from a page that is still to come to one that was read. Such a queue moves, which is as if a turn ran.
 */
async function settledQueue(server: AppServer, threadId: string): Promise<QueueItem[] | ReleaseOutcome> {
  let before: QueueItem[] | undefined;
  for (let lists = 0; lists < listsMax; lists += 1) {
    const list = await listQueue(server, threadId);
    if (typeof list === 'string') return list;
    const { items, pages } = list;
    if (pages === 1 || (before !== undefined && sameItems(before, items))) return items;
    before = items;
  }
  return 'busy';
}

const sameItems = (some: readonly QueueItem[], others: readonly QueueItem[]): boolean =>
  some.length === others.length && some.every(({ id }, at) => id === others[at]?.id);

async function listQueue(
  server: AppServer,
  threadId: string,
): Promise<{ items: QueueItem[]; pages: number } | ReleaseOutcome> {
  const items: QueueItem[] = [];
  let cursor: unknown;
  for (let pages = 1; pages <= pagesMax; pages += 1) {
    const page = await server.request('thread/queue/list', {
      threadId,
      limit: itemsPerPage,
      ...(cursor !== undefined && { cursor }),
    });
    if (!('result' in page)) return failureOf(page);
    const { data, nextCursor } = page.result;
    if (!Array.isArray(data)) return 'refused';
    const read = data.map(itemOf);
    // What cannot be read might be anybody's, and ours.
    if (!read.every((item) => item !== undefined)) return 'refused';
    items.push(...read);
    if (nextCursor === undefined || nextCursor === null) return { items, pages };
    cursor = nextCursor;
  }
  return 'refused';
}

/** Undefined where it names no submission. */
function itemOf(value: unknown): QueueItem | undefined {
  const { id, input } = isObject(value) ? value : {};
  if (typeof id !== 'string' || id === '') return undefined;
  const [only, ...more]: unknown[] = Array.isArray(input) ? input : [];
  const text = more.length === 0 && isObject(only) && only.type === 'text' ? only.text : undefined;
  return { id, text: typeof text === 'string' ? text : '' };
}
