// Queue release with the real Codex: threads on a shared app-server, `codex queue`, and the router's questions over the real
// proxy. The router's clock is moved by the test; Codex has its own.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { codexQueues } from '../../../src/compose/queues.ts';
import type { AppServer } from '../../../src/hosts/codex/app-server.ts';
import { receipts } from '../../../src/mailbox/receipts.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { renderNotice } from '../../../src/protocol/notices.ts';
import { inspectStore } from '../../../src/store/inspection.ts';
import type { DoctorFacts } from '../../../src/surfaces/doctor/facts.ts';
import { codexQueueRelease } from '../../../src/surfaces/doctor/reached.ts';
import { seededRandom } from '../../contract/clock.ts';
import { letter, ok, openScene, post, type Scene } from '../../contract/desk.ts';
import { type Exchange, openExchange } from '../../contract/exchange.ts';
import { codexThread, openAsking } from '../../contract/queue.ts';
import { until } from '../../process/home.ts';
import type { CodexRequest } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';
import { type CodexHome, openCodexHome, result, says } from './server.ts';
import { openTerminal } from './terminal.ts';

let codex: CodexHome;
let desk: Scene;
let router: Exchange;
beforeEach(async () => {
  // What an interrupted turn asked for stays among the newest texts: only the last one counts.
  codex = await openCodexHome(({ request }) => {
    if (lastUserText(request).includes('take long')) return { sleepMs: 60_000 };
    return lastUserText(request).includes('take a moment') ? { sleepMs: 6_000 } : undefined;
  });
  desk = await openScene();
  router = openExchange(desk);
  desk.onNotify = ({ delivery_id }) => router.notify(delivery_id);
  const place = { program: codex.program, home: codex.home };
  const queues = codexQueues({ PATH: codex.env.PATH, HOME: codex.dir }, systemClock);
  openAsking(desk, desk.store, (notice, ...rest) => queues({ ...notice, place }, ...rest));
});
afterEach(() => codex.end());

const idsIn = async (server: AppServer, threadId: string): Promise<string[]> =>
  ((await result(server, 'thread/queue/list', { threadId })).data as { id: string }[]).map(({ id }) => id);

/** A thread whose turn a person has interrupted. */
async function interruptedThread(server: AppServer): Promise<string> {
  const started = await result(server, 'thread/start', { cwd: codex.work });
  const threadId = (started.thread as { id: string }).id;
  const { turn } = await result(server, 'turn/start', { threadId, input: says('take long') });
  await codex.model.waitFor(({ thread }) => thread === threadId, 20_000);
  await result(server, 'turn/interrupt', { threadId, turnId: (turn as { id: string }).id });
  return threadId;
}

/** A message to the thread, whose notice `codex queue` takes. */
async function ring(thread: string, more = ''): Promise<{ message_id: string; submission_id: string }> {
  const host = await router.join(thread, { ...codexThread });
  const sent = post(desk, letter({ target_kind: 'session', recipient: thread }));
  await desk.clock.advance(0);
  const notification_id = String(
    desk.rows('SELECT notification_id FROM reservation ORDER BY seq DESC')[0]?.notification_id,
  );
  const text = `${renderNotice({ notification_id, unread: 1, progress: 0 })}\n${more}`;
  const submission_id = await codex.queue(thread, text);
  const receipt = { notification_id, state: 'host_queued', thread_id: thread, submission_id };
  ok((await host.accept(host.frames.at(-1), { receipt })) as never);
  return { message_id: ok(await sent).message_id, submission_id };
}

/** Lets 20 s of the router pass, and the question that is due then. */
async function check(): Promise<void> {
  const left = () => JSON.stringify(desk.rows('SELECT delivery_id, checks FROM queue_release'));
  const before = left();
  await desk.clock.advance(20_000);
  await until('it was asked', () => left() !== before, 20_000);
}

const activation = (thread: string, message_id: string) =>
  ok(receipts(desk, { project: 'shop', recipient: thread, message_id }))
    .receipts.filter(({ receipt_kind }) => receipt_kind === 'host_activation')
    .map((fact) => [fact.value, 'detail' in fact && fact.detail]);

/** The text of a notice that this store made for the thread before. */
async function noticeOfThisStore(thread: string): Promise<string> {
  const notification_id = '0123456789ab';
  const ended = { rung_at_ms: 0, expires_at_ms: 1 };
  const row = { notification_id, session_root: thread, state: 'host_queued', step: 0, ...ended } as const;
  await desk.store.write((tx) => tx.notices.open(row));
  return renderNotice({ notification_id, unread: 1, progress: 0 });
}

const lastUserText = ({ body }: CodexRequest): string =>
  body.input
    .filter(({ type, role }) => type === 'message' && role === 'user')
    .at(-1)
    ?.content?.map(({ text = '' }) => text)
    .join('') ?? '';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describeWithHost('codex', 'queue release', () => {
  it('[HOST-179, HOST-187, HOST-259] after an interrupted turn an item stays, whatever comes later; the release starts exactly it', async () => {
    let server = await codex.serve();
    const thread = await interruptedThread(server);
    const earlier = await noticeOfThisStore(thread);
    const first = await codex.queue(thread, earlier);
    const second = await ring(thread, 'take long');
    const both = [first, second.submission_id];
    await pause(3_000);
    expect(await idsIn(server, thread)).toEqual(both);
    await codex.stopServing();
    server = await codex.serve();
    await result(server, 'thread/resume', { threadId: thread });
    await pause(3_000);
    expect(await idsIn(server, thread)).toEqual(both);
    const asked = codex.model.requests.length;
    await check();
    const request = await codex.model.waitFor((one) => one.thread === thread, 20_000, asked);
    expect([request.turn.turn_trigger, lastUserText(request)]).toEqual([
      'queue',
      expect.stringMatching(/^\[Postbell inbox notice\][\s\S]*take long$/),
    ]);
    expect(await idsIn(server, thread)).toEqual([first]);
    expect(activation(thread, second.message_id)).toEqual([['woken', '{"codex_queue":"started"}']]);
  });

  it('[HOST-260] starts nothing where other input was queued first: a person must resume it, and then all of it runs', async () => {
    const server = await codex.serve();
    const thread = await interruptedThread(server);
    const foreign = await codex.queue(thread, 'fix the parser');
    const { message_id, submission_id } = await ring(thread);
    const asked = codex.model.requests.length;
    for (let n = 1; n < 30; n += 1) await check();
    expect(activation(thread, message_id)).toEqual([]);
    await check();
    expect(activation(thread, message_id)).toEqual([
      ['manual_resume_required', '{"reason":"foreign_input"}'],
    ]);
    expect(await idsIn(server, thread)).toEqual([foreign, submission_id]);
    expect(codex.model.requests).toHaveLength(asked);
    await result(server, 'turn/start', { threadId: thread, input: says('go on') });
    await until('the queue is empty', async () => (await idsIn(server, thread)).length === 0, 20_000);
  });

  it('is busy while a turn runs, and finds the item taken when Codex has begun with it by itself', async () => {
    const server = await codex.serve();
    const started = await result(server, 'thread/start', { cwd: codex.work });
    const threadId = (started.thread as { id: string }).id;
    await result(server, 'turn/start', { threadId, input: says('take a moment') });
    await codex.model.waitFor(({ thread }) => thread === threadId, 20_000);
    const { message_id, submission_id } = await ring(threadId);
    await check();
    expect(activation(threadId, message_id)).toEqual([]);
    expect(desk.rows('SELECT submission_id, checks FROM queue_release')).toEqual([
      { submission_id, checks: 1 },
    ]);
    await until('it is taken', async () => (await idsIn(server, threadId)).length === 0, 20_000);
    await check();
    expect(activation(threadId, message_id)).toEqual([['woken', '{"codex_queue":"empty"}']]);
  });

  it('[HOST-185, HOST-261] CX8: is unsupported where no app-server answers, as of a terminal without one; doctor names the thread, and the item waits for a prompt', async () => {
    const terminal = await openTerminal(codex);
    await terminal.type('take long');
    const { thread } = await codex.model.waitFor(({ side }) => !side, 20_000);
    await terminal.press('Escape');
    await until('it is interrupted', async () => /interrupted/i.test(await terminal.screen()), 20_000);
    const { message_id } = await ring(thread, 'the queued one');
    for (let n = 0; n < 30; n += 1) await check();
    expect(activation(thread, message_id)).toEqual([['unsupported', '{"reason":"no_daemon"}']]);
    const value = await inspectStore({ path: desk.path, clock: desk.clock, random: seededRandom(1) });
    expect(codexQueueRelease({ store: { state: 'found', value } } as DoctorFacts)).toMatchObject({
      level: 'warn',
      text: expect.stringContaining(thread),
    });
    // The terminal looks at its queue every 10 s.
    const asked = codex.model.requests.length;
    await pause(12_000);
    expect(codex.model.requests).toHaveLength(asked);
    await terminal.type('go on');
    const queued = await codex.model.waitFor(({ turn }) => turn.turn_trigger === 'queue', 30_000, asked);
    expect(lastUserText(queued)).toContain('the queued one');
  });
});
