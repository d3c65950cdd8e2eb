// Asks Codex to begin with exactly one item of a thread's queue, and only where nothing waits there that is not Postbell's:
// Codex runs the rest of the queue after it.

import type { Clock } from '../../ports/clock.ts';
import type { QueueItem, ReleaseOutcome } from '../../ports/releases.ts';
import { Fault } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json.ts';
import { type AppServer, connectAppServer, idOf, type Reply, type RpcError } from './app-server.ts';
import { openProxy } from './proxy.ts';

/** An item has at most a million characters; a queue at most 100 items. */
const itemsPerPage = 10;
const itemsMax = 200;
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
  const items = await listQueue(server, thread_id);
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
  code === -32600 && /queue is empty|queued submission not found/.test(message);
const isBusy = ({ code, message }: RpcError): boolean =>
  code === overloaded || (code === -32600 && /active or pending turn/.test(message));

/** A server without the method, or one that refuses it to this client, has refused. */
function failureOf(reply: Exclude<Reply, { result: unknown }>): ReleaseOutcome {
  if ('error' in reply) return isBusy(reply.error) ? 'busy' : 'refused';
  if (reply.lost === 'timeout') return 'no_answer';
  throw new Fault('adapter_error', `the app-server ${lostWords[reply.lost]}`);
}

const lostWords = {
  closed: 'closed the connection',
  too_long: 'sent a longer message than is taken from it',
  unreadable: 'gave no answer that can be read',
} as const;

async function listQueue(server: AppServer, threadId: string): Promise<QueueItem[] | ReleaseOutcome> {
  const items: QueueItem[] = [];
  let cursor: unknown;
  do {
    const page = await server.request('thread/queue/list', {
      threadId,
      limit: itemsPerPage,
      ...(cursor !== undefined && { cursor }),
    });
    if (!('result' in page)) return failureOf(page);
    const { data, nextCursor } = page.result;
    // What cannot be read might be anybody's.
    if (!Array.isArray(data) || items.length > itemsMax) return 'refused';
    items.push(...data.map(itemOf));
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}

function itemOf(value: unknown): QueueItem {
  const { id, input } = isObject(value) ? value : {};
  const [only, ...more]: unknown[] = Array.isArray(input) ? input : [];
  const text = more.length === 0 && isObject(only) && only.type === 'text' ? only.text : undefined;
  return { id: typeof id === 'string' ? id : '', text: typeof text === 'string' ? text : '' };
}
