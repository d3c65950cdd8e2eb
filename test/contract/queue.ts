// A router that asks about queues, over a scene: what it asked, and what the host answers as the scene says.

import type { AskQueue, QueueItem, ReleaseOutcome } from '../../src/ports/releases.ts';
import type { Store } from '../../src/ports/store.ts';
import type { Registration } from '../../src/protocol/session.ts';
import { QueueReleases } from '../../src/router/releases.ts';
import { atEnd, letter, ok, post, type Scene } from './desk.ts';
import type { Exchange } from './exchange.ts';

export const thread = '0199aaaa-0000-7000-8000-000000000001';
export const codexThread: Partial<Registration> = {
  adapter_kind: 'codex-queue',
  bell: 'codex-queue',
  host_kind: 'codex',
};

export interface Question {
  thread_id: string;
  submission_id: string;
  atMs: number;
  isOurs: (item: QueueItem) => boolean;
}

export interface Asking {
  questions: Question[];
  /** What the host answers to the next questions. */
  answer: (question: Question, abort: AbortSignal) => ReleaseOutcome | Promise<ReleaseOutcome>;
  faults: string[];
  close(): Promise<void>;
}

/** Looks every 2 s, as the router's process does. */
export function openAsking(desk: Scene, store: Store = desk.store, ask?: AskQueue): Asking {
  const asking: Asking = {
    questions: [],
    answer: () => 'busy',
    faults: [],
    close: async () => {
      cancel();
      await releases.close();
    },
  };
  const asked: AskQueue = async ({ thread_id, submission_id }, isOurs, abort) => {
    const question = { thread_id, submission_id, atMs: desk.clock.nowMs(), isOurs };
    asking.questions.push(question);
    return asking.answer(question, abort);
  };
  const log = { info: () => {}, warn: (event: string) => void asking.faults.push(event) };
  const releases = new QueueReleases({ ...desk.board, store }, ask ?? asked, log);
  let cancel = (): void => {};
  const again = (): void => {
    cancel = desk.clock.after(2_000, again);
    releases.look();
  };
  again();
  atEnd(() => void asking.close());
  return asking;
}

/** A message to the exact thread, whose host takes the notice into its queue. */
export async function queued(
  desk: Scene,
  router: Exchange,
  over: { session?: string; receipt?: object; letter?: object } = {},
): Promise<{ message_id: string; delivery_id: string; recipient: string }> {
  const { session = thread } = over;
  const host = await router.join(session, { ...codexThread });
  const sent = post(desk, letter({ target_kind: 'session', recipient: session, ...over.letter }));
  await desk.clock.advance(0);
  const receipt = { state: 'host_queued', thread_id: session, submission_id: `sub-of-${session}` };
  ok((await host.accept(host.frames.at(-1), { receipt: over.receipt ?? receipt })) as never);
  const { message_id, delivery_id } = ok(await sent);
  return { message_id, delivery_id, recipient: session };
}
