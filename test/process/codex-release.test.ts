// The way from the router to a queue of Codex, with a program in its place that speaks as its proxy does.

import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startRouter } from '../../src/compose/daemon.ts';
import { codexQueues } from '../../src/compose/queues.ts';
import { askThroughProxy } from '../../src/hosts/codex/release.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { atEnd, openScene, type Scene, temporaryDirectory } from '../contract/desk.ts';
import { openExchange } from '../contract/exchange.ts';
import { queued, thread } from '../contract/queue.ts';
import { type FakeCodex, fakeCodex } from './codex.ts';
import { until } from './home.ts';
import { alive } from './postbell.ts';

let codex: FakeCodex;
let dir: string;
let abort: AbortController;
beforeEach(() => {
  dir = temporaryDirectory();
  codex = fakeCodex(dir);
  abort = new AbortController();
});
afterEach(async () => {
  abort.abort();
  for (const { pid } of codex.starts()) await until('the proxy has ended', () => !alive(pid as number));
});

const mine = { thread_id: thread, submission_id: 'sub-1' };
const ours = { id: 'sub-1', text: '[Postbell inbox notice]' };
const isOurs = ({ text }: { text: string }): boolean => text === ours.text;

const ask = (waitMs = 10_000, program = codex.program) =>
  askThroughProxy(
    {
      program,
      environment: { PATH: process.env.PATH as string },
      clock: systemClock,
      waitMs,
      abort: abort.signal,
    },
    mine,
    isOurs,
  );

describe('a question about one submission', () => {
  it('[HOST-179] goes over the proxy, whose environment names the home and nothing of ours, and starts exactly it', async () => {
    codex.play({ queue: [ours, { id: 'sub-2', text: ours.text }] });
    const environment = {
      PATH: `${codex.bin}:${process.env.PATH}`,
      HOME: dir,
      OPENAI_API_KEY: 'secret',
      POSTBELL_HOME: dir,
      CODEX_HOME: '/of/the/router',
    };
    const queues = codexQueues(environment, systemClock);
    const place = { program: codex.program, home: '/home/b/.codex' };
    expect(await queues({ ...mine, place }, isOurs, abort.signal)).toBe('started');
    expect(await queues({ ...mine, place: undefined }, isOurs, abort.signal)).toBe('taken');
    const starts = codex.starts();
    expect(starts.map(({ argv }) => argv)).toEqual([
      ['app-server', 'proxy'],
      ['app-server', 'proxy'],
    ]);
    const own = { PATH: environment.PATH, HOME: dir };
    const seen = starts.map(({ env }) =>
      Object.fromEntries(Object.entries(env ?? {}).filter(([name]) => !/^(PWD|_|SHLVL)$/.test(name))),
    );
    expect(seen).toEqual([{ ...own, CODEX_HOME: '/home/b/.codex' }, own]);
    const asked = codex.entries().filter(({ method }) => method !== undefined);
    expect(asked.slice(0, 4)).toEqual([
      {
        id: 1,
        method: 'initialize',
        params: {
          clientInfo: { name: 'postbell', title: null, version: expect.any(String) },
          capabilities: { experimentalApi: true },
        },
      },
      { method: 'initialized' },
      { id: 2, method: 'thread/queue/list', params: { threadId: thread, limit: 10 } },
      {
        id: 3,
        method: 'thread/queue/start',
        params: { threadId: thread, queuedSubmissionId: 'sub-1' },
      },
    ]);
  });

  it('[HOST-180] starts nothing while other input waits, wherever in the queue; and again and again while a turn runs', async () => {
    const many = Array.from({ length: 25 }, (_, n) => ({ id: `more-${n}`, text: ours.text }));
    const foreign = [
      { id: 'x', text: 'fix the parser' },
      {
        id: 'x',
        input: [
          { type: 'text', text: ours.text },
          { type: 'image', url: 'a' },
        ],
      },
      { id: 'x', input: [] },
      { id: 'x' },
    ];
    for (const other of foreign)
      for (const queue of [
        [other, ours],
        [ours, other],
        [ours, ...many, other],
      ]) {
        codex.play({ queue });
        expect(await ask()).toBe('foreign_input');
      }
    expect(codex.methods()).not.toContain('thread/queue/start');
    codex.play({ queue: [ours, ...many], busy: 3 });
    const outcomes = [await ask(), await ask(), await ask(), await ask(), await ask()];
    expect(outcomes).toEqual(['busy', 'busy', 'busy', 'started', 'taken']);
  });

  it('[HOST-180] a queue that moves while it is read page by page is read anew: nothing slips from one page to the other', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ id: `more-${n}`, text: ours.text }));
    const foreign = { id: 'x', text: 'fix the parser' };
    codex.play({ queue: [...many(10), ours], slips: 1 });
    expect(await ask()).toBe('started');
    codex.play({ queue: [ours, ...many(9), foreign, ...many(5)], slips: 0 });
    expect(await ask()).toBe('foreign_input');
    codex.play({ queue: [...many(10), foreign, ours], slips: 1 });
    expect(await ask()).toBe('foreign_input');
    // For as long as anybody looks.
    codex.play({ queue: [...many(90), ours], slips: 60 });
    expect(await ask()).toBe('busy');
    expect(codex.methods().filter((method) => method === 'thread/queue/start')).toHaveLength(1);
  });

  it('comes to what is known and no more', async () => {
    const list = 'thread/queue/list';
    const start = 'thread/queue/start';
    const unknown = { code: -32600, message: 'Invalid request: unknown variant `thread/queue/list`' };
    const queue = [ours];
    const scenes: [object, string][] = [
      [{ queue: [] }, 'taken'],
      [{ queue, errors: { [start]: { code: -32600, message: 'queue is empty' } } }, 'taken'],
      [{ queue, errors: { [start]: { code: -32600, message: 'queued submission not found: s' } } }, 'taken'],
      [{ queue, errors: { [start]: { code: -32001, message: 'Server overloaded; retry later.' } } }, 'busy'],
      [{ queue, errors: { [list]: unknown } }, 'refused'],
      // Ours may be one that cannot be read.
      ...[null, 7, {}, { submissionId: ours.id }, { id: '' }].map((item): [object, string] => [
        { answers: { [list]: { result: { data: [item] } } } },
        'refused',
      ]),
      [
        { queue, errors: { [start]: { code: -32600, message: 'not one word of: queue is empty' } } },
        'refused',
      ],
      [{ answers: { [list]: { result: { data: [], nextCursor: '0' } } } }, 'refused'],
      [{ queue, errors: { [start]: { code: -32600, message: 'resume the thread before' } } }, 'refused'],
      [{ queue, errors: { initialize: { code: -32600, message: 'no' } } }, 'refused'],
      [{ exits: 1, says: 'Error: failed to connect to socket at /x/app-server-control.sock' }, 'no_daemon'],
    ];
    for (const [scene, outcome] of scenes) {
      codex.play(scene);
      expect([scene, await ask()]).toEqual([scene, outcome]);
    }
    for (const scene of [
      { exits: 1, says: 'Error: something else' },
      { queue, drops: [list] },
      { queue, drops: [start] },
      // No turn is named, so that none is known to have begun.
      { queue, answers: { [start]: {} } },
      { queue, answers: { [start]: { result: null } } },
      { queue, answers: { [start]: { result: {} } } },
      { queue, answers: { [start]: { result: { turn: { id: '' } } } } },
      { queue, answers: { [start]: { error: 'no such thing' } } },
      { queue, answers: { [start]: { error: {} } } },
      { queue, answers: { [start]: { error: { code: -32600, message: 'queue is empty' }, result: {} } } },
      { queue, answers: { [list]: { error: 'no such thing' } } },
    ]) {
      codex.play(scene);
      const came = await ask().catch(({ code }) => code);
      expect(`${JSON.stringify(scene)} ${came}`).toMatch(/ adapter_error$/);
    }
    await expect(ask(1_000, '/no/such/codex')).rejects.toMatchObject({ code: 'adapter_error' });
  });

  it('ends with a proxy that breaks off, and not when its time is up', async () => {
    codex.play({ queue: [ours], drops: ['thread/queue/start'] });
    const all = Array.from({ length: 24 }, () => ask(30_000).catch(({ code }) => code as string));
    expect(new Set(await Promise.all(all))).toEqual(new Set(['adapter_error']));
  });

  it('ends in its time, with every process that it started', async () => {
    for (const scene of [{ hangs: true }, { silent: ['initialize'] }, { silent: ['thread/queue/list'] }]) {
      codex.play({ ...scene, child: true });
      expect([scene, await ask(1_500)]).toEqual([scene, 'no_answer']);
    }
    codex.play({ hangs: true, child: true });
    const given = ask(60_000);
    const count = codex.starts().length;
    await until('it has begun', () => codex.entries().filter(({ child }) => child).length > count);
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: 'adapter_error' });
    for (const { pid, child } of codex.entries())
      await until('it has ended', () => !alive((pid ?? child) as number));
  });
});

describe('the router as it is started', () => {
  it('asks the Codex that PATH finds 20 s after the acceptance, and leaves the fact', async () => {
    const desk: Scene = await openScene();
    const exchange = openExchange(desk);
    desk.onNotify = ({ delivery_id }) => exchange.notify(delivery_id);
    const { delivery_id } = await queued(desk, exchange);
    codex.play({ queue: [{ id: `sub-of-${thread}`, text: 'whatever' }] });
    const { store, clock, random, wake } = desk;
    const places = placesOf({ HOME: desk.directory, POSTBELL_DB: desk.path });
    const environment = { PATH: `${codex.bin}:${process.env.PATH}` };
    const daemon = await startRouter(
      { environment, places, store, clock, random, wake },
      { info: () => {}, warn: () => {} },
      { stop: () => {}, lost: () => {} },
    );
    atEnd(() => void daemon.close());
    await clock.advance(18_000);
    expect(codex.starts()).toEqual([]);
    await clock.advance(2_000);
    const facts = () => desk.rows("SELECT * FROM receipt WHERE receipt_kind = 'host_activation'");
    await until('the fact is there', () => facts().length === 1);
    expect(facts()).toMatchObject([{ delivery_id, value: 'woken', detail: '{"codex_queue":"started"}' }]);
    expect(desk.counts().queue_release).toBe(0);
    await daemon.close();
    expect(existsSync(places.routerSocket)).toBe(false);
  });
});
