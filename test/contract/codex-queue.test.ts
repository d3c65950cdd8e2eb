// `codex queue`, and the bell that rings by it: what the program is given, what its answers are taken for, and how long it has.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { queueBell } from '../../src/hosts/codex/bell.ts';
import { codexNotice } from '../../src/hosts/codex/notice.ts';
import { queueNotice } from '../../src/hosts/codex/queue.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { ringOnce } from '../../src/mailbox/ring-once.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { RingItem } from '../../src/ports/bell.ts';
import type { CoveredMessage } from '../../src/protocol/delivery.ts';
import { utf8Bytes } from '../../src/protocol/json.ts';
import { renderNotice } from '../../src/protocol/notices.ts';
import { queue } from '../conformance/adapters.ts';
import { openBelled } from '../conformance/scene.ts';
import { type FakeCodex, fakeCodex } from '../process/codex.ts';
import { alive } from '../process/postbell.ts';
import { FakeClock } from './clock.ts';
import { attach, letter, openScene, post, posted, refused } from './desk.ts';

const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';
let dir: string;
let codex: FakeCodex;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'pb-')));
  codex = fakeCodex(dir);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const environment = { PATH: process.env.PATH as string };
const ringWith = (notice: string, clock = systemClock) =>
  queueNotice(clock, { file: codex.program, environment }, { thread, notice });
const bellOf = (clock = systemClock, file = codex.program, of = thread) =>
  queueBell({
    thread: of,
    queue: (notice) => queueNotice(clock, { file, environment }, { thread: of, notice }),
  });

const covered = (n: number, over: Partial<CoveredMessage> = {}): CoveredMessage => ({
  sender: 'local',
  msg_id: `msg_${n}`,
  project: 'shop~0123456789abcdef0123456789abcdef',
  recipient: 'bob',
  target_kind: 'principal',
  message_id: `msg_${n}`,
  delivery_id: `dlv_${n}`,
  ...over,
});
const item = (count: number, over: Partial<CoveredMessage> = {}): RingItem => ({
  content: 'notice',
  notification_id: '0123456789ab',
  text: renderNotice({ notification_id: '0123456789ab', unread: count, progress: 0 }),
  covered: Array.from({ length: count }, (_, n) => covered(n, over)),
  session_id: thread,
});
const signal = new AbortController().signal;

describe('the notice', () => {
  it('[HOST-161] begins with its marker, names ten messages by scope and ids, counts the rest, and says how to handle them', async () => {
    const kinds = ['principal', 'session'] as const;
    const messages = Array.from({ length: 12 }, (_, n) =>
      covered(n, {
        sender: `sender ${n}`,
        project: `project-${n}~0123456789abcdef0123456789abcdef`,
        recipient: n % 2 === 0 ? `inbox ${n} "quoted"` : `session-${n}`,
        target_kind: kinds[n % 2] as (typeof kinds)[number],
      }),
    );
    await bellOf().ring({ ...item(12), covered: messages }, signal);
    const [argv] = codex.starts().map((start) => start.argv ?? []);
    const notice = argv?.[argv.indexOf('--message') + 1] ?? '';
    expect(notice.split('\n')[0]).toBe('[Postbell inbox notice]');
    expect(notice).toContain('notification_id="0123456789ab"');
    const named = notice
      .split('\n')
      .filter((line) => line.startsWith('- '))
      .map((line) => JSON.parse(line.slice(2)));
    expect(named).toEqual(
      messages.slice(0, 10).map(({ project, recipient, target_kind, message_id, delivery_id }) => ({
        project,
        recipient,
        target_kind,
        message_id,
        delivery_id,
      })),
    );
    expect(notice).toContain('\nand 2 more.\n');
    expect(notice).toContain('First read the receipts');
    expect(notice).not.toContain('sender 1');
    for (const [count, rest] of [
      [10, undefined],
      [11, 'and 1 more.'],
      [200, 'and 190 more.'],
    ] as const)
      expect(/^and \d+ more\.$/m.exec(codexNotice(item(count)))?.[0]).toBe(rest);
  });

  it('[HOST-162] says to read receipts first, to stop at an intake, else to fetch, distrust and record; and what to do without tools', () => {
    const notice = codexNotice(item(1)).replaceAll('\n', ' ');
    const order = [
      'First read the receipts',
      'stop there if an intake is recorded',
      'Else fetch it',
      'untrusted data',
      'record its intake',
      'tools are missing, or you have no approval',
      'say so and leave the message pending',
    ];
    const places = order.map((words) => notice.indexOf(words));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(Math.min(...places)).toBeGreaterThan(0);
  });

  it('names fewer where names are long, so that it fits', () => {
    const long = codexNotice(item(10, { project: '\u2603'.repeat(200), recipient: '\u{1F600}'.repeat(200) }));
    expect(utf8Bytes(long)).toBeLessThanOrEqual(12_288);
    expect(long).toMatch(/and \d more\./);
  });
});

describe('a notice that runs late', () => {
  it('[HOST-163] holds no body; the inbox has it for whoever fetches, two at once too', async () => {
    const s = await openBelled(queue);
    await s.attach();
    s.startNotifier();
    const { message_id } = await posted(s.desk, { payload: 'SENTINEL' });
    await s.desk.clock.advance(1_000);
    await s.done(message_id);
    const late = s.rings().map(({ text }) => text);
    expect(late).toHaveLength(1);
    s.host.take(late[0] as string);
    expect(JSON.stringify([s.host.given, s.host.seen])).not.toContain('SENTINEL');
    const scope = { project: 'shop', recipient: 'bob', target_kind: 'principal', message_id } as const;
    const both = [fetchMessage(s.desk, scope), fetchMessage(s.desk, scope)];
    expect(both).toMatchObject([{ payload: 'SENTINEL' }, { payload: 'SENTINEL' }]);
  });
});

describe('a hand-off of what was rung for already', () => {
  it('is accepted with the submission of that ring', async () => {
    const s = await openBelled(queue);
    s.startNotifier();
    const exact = letter({ target_kind: 'session', recipient: 's1' });
    refused(await post(s.desk, exact));
    await s.desk.clock.advance(1_000);
    expect(s.rings()).toHaveLength(1);
    await s.attach();
    const { native_delivery } = await posted(s.desk, exact);
    expect(native_delivery?.receipt).toMatchObject({
      thread_id: expect.any(String),
      submission_id: 'item-1',
    });
    expect(s.rings()).toHaveLength(1);
  });
});

describe('the command', () => {
  it('[HOST-164, INB-053] is an argument vector without a shell or an input, and every byte arrives', async () => {
    const notice = `${codexNotice(item(1))}\n$(touch x) \`y\` "q" 'r' ; é \u2028 \\ %s`;
    expect(await ringWith(notice)).toMatchObject({
      outcome: 'queued',
      submission_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const [start] = codex.starts();
    expect(start?.argv).toEqual(['queue', '--thread', thread, '--message', notice]);
    expect(start?.env).toEqual(expect.not.objectContaining({ POSTBELL_HOME: expect.anything() }));
  });

  const answers: [string, object, object][] = [
    [
      'no rollout',
      { says: `Error: thread/queue/add failed: no rollout found for thread id ${thread}`, exits: 1 },
      { code: 'thread_not_found', permanent: true },
    ],
    [
      'no session',
      { says: "Error: No active session found matching 'x'.", exits: 1 },
      { code: 'thread_not_found', permanent: true },
    ],
    [
      'an ephemeral thread',
      { says: 'Error: ephemeral thread does not support queued submissions', exits: 1 },
      { code: 'thread_unavailable', permanent: true },
    ],
    [
      'a full queue',
      { says: 'Error: queue cannot contain more than 100 submissions', exits: 1 },
      { code: 'adapter_queue_full', permanent: false },
    ],
    [
      'any other word',
      { says: 'Error: the moon is in the way', exits: 1 },
      { code: 'codex_queue_rejected', permanent: false },
    ],
    [
      'wrong words',
      { says: 'error: unexpected argument', exits: 2 },
      { code: 'codex_queue_process_failed', permanent: false },
    ],
  ];
  for (const [what, scene, expected] of answers)
    it(`[HOST-168] that fails with ${what} is read once, as its code`, async () => {
      codex.play(scene);
      expect(await ringWith('x')).toEqual({ outcome: 'rejected', ...expected });
    });

  it.each([101, 137])('that breaks, with %i, may have queued it: nothing is tried again', async (exits) => {
    codex.play({ exits });
    expect(await ringWith('x')).toEqual({ outcome: 'unknown', code: 'codex_queue_process_failed' });
    expect(codex.starts()).toHaveLength(1);
  });

  it('that has ended with 0 has queued it, whatever it left running with its output open', async () => {
    codex.play({ holds: true, exits: 0 });
    const clock = new FakeClock();
    const ring = ringOnce(clock, bellOf(clock), item(1));
    await until(() => codex.entries().some(({ child }) => child !== undefined));
    const pids = codex.entries().flatMap(({ pid, child }) => pid ?? child ?? []);
    await until(() => !alive(pids[0] as number));
    try {
      let settled = false;
      void ring.finally(() => {
        settled = true;
      });
      for (let tries = 0; tries < 20 && !settled; tries += 1) {
        await clock.advance(500);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(await ring).toMatchObject({ outcome: { outcome: 'accepted' } });
    } finally {
      process.kill(pids[1] as number, 'SIGKILL');
    }
  });

  it('[HOST-166, INB-055] that says nothing is killed with its group after 30_000 ms: the outcome is unknown, and nothing is tried again', async () => {
    codex.play({ hangs: true, child: true });
    const clock = new FakeClock();
    const ring = ringOnce(clock, bellOf(clock), item(1));
    await until(() => codex.entries().some(({ child }) => child !== undefined));
    const pids = [
      codex.starts()[0]?.pid,
      codex.entries().find(({ child }) => child !== undefined)?.child,
    ] as number[];
    await clock.advance(29_999);
    expect(pids.map(alive)).toEqual([true, true]);
    await clock.advance(1);
    expect(await ring).toMatchObject({ outcome: { outcome: 'unknown', code: 'codex_queue_timeout' } });
    await until(() => !pids.some(alive));
    await clock.advance(120_000);
    expect(codex.starts()).toHaveLength(1);
  });

  it('[HOST-167, INB-054] that fails is run three times, 2_000 ms apart', async () => {
    codex.play({ says: 'Error: not now', exits: 1 });
    const clock = new FakeClock();
    const ring = ringOnce(clock, bellOf(clock), item(1));
    for (const n of [1, 2, 3]) {
      await until(() => codex.starts().length === n);
      const { pid } = codex.starts().at(-1) as { pid: number };
      await until(() => !alive(pid));
      // Its end is heard a moment after it.
      await pause(250);
      await clock.advance(1_999);
      expect(codex.starts()).toHaveLength(n);
      await clock.advance(1);
    }
    expect(await ring).toMatchObject({ outcome: { outcome: 'rejected', code: 'codex_queue_rejected' } });
    expect(codex.starts()).toHaveLength(3);
  });
});

describe('a notice that was not queued', () => {
  const tooLarge = 'x'.repeat(12_289);
  const missing = { file: '/nowhere/codex', environment };
  const causes: [string, Partial<Parameters<typeof queueBell>[0]>, string][] = [
    ['a malformed thread id', { thread: 'no-thread' }, 'thread_not_found'],
    ['a notice that is too large', { render: () => tooLarge }, 'native_message_too_large'],
    ['a NUL byte', { render: () => 'a\0b' }, 'adapter_rejected'],
    [
      'a missing program',
      { queue: (notice) => queueNotice(systemClock, missing, { thread, notice }) },
      'codex_queue_process_failed',
    ],
    [
      'exhausted tries',
      { queue: async () => ({ outcome: 'rejected', code: 'codex_queue_rejected', permanent: false }) },
      'codex_queue_rejected',
    ],
    [
      'a time-out',
      { queue: async () => ({ outcome: 'unknown', code: 'codex_queue_timeout' }) },
      'codex_queue_timeout',
    ],
  ];
  for (const [what, over, reason] of causes)
    it(`[INB-056] because of ${what} is saved as a failed delivery, and the state is delivery_failed`, async () => {
      const ports = { thread, queue: async () => ({ outcome: 'queued' }) as const, ...over };
      const s = await openBelled((scene, onText) => ({ ...queue(scene, onText), bell: queueBell(ports) }));
      await s.attach();
      s.startNotifier();
      const sent = post(s.desk, letter({ target_kind: 'session', recipient: 's1' }));
      for (let n = 0; n < 10; n += 1) {
        await s.desk.clock.advance(1_000);
        await pause(20);
      }
      refused(await sent);
      expect(await s.failures()).toMatchObject([{ reason }]);
      const [{ message_id } = { message_id: '' }] = s.desk.rows('SELECT message_id FROM message');
      expect(s.stateOf(String(message_id), 's1')).toBe('delivery_failed');
    });
});

describe('the bell', () => {
  it('[HOST-169] accepts after exit 0 alone, with the submission that was printed', async () => {
    const accepted = await bellOf().ring(item(1), signal);
    expect(accepted).toEqual({
      outcome: 'accepted',
      content: 'notice',
      receipt: {
        notification_id: '0123456789ab',
        state: 'host_queued',
        thread_id: thread,
        submission_id: expect.any(String),
      },
    });
    codex.play({ says: 'no', exits: 1 });
    expect((await bellOf().ring(item(1), signal)).outcome).toBe('rejected');
  });

  it('[HOST-165] starts no process for what can never be queued: 12_289 bytes, a NUL, a malformed thread; a missing program is said at once', async () => {
    const sized = (bytes: number): RingItem => {
      const base = utf8Bytes(codexNotice({ text: '', covered: [] }));
      return { ...item(0), text: 'x'.repeat(bytes - base) };
    };
    expect(utf8Bytes(codexNotice(sized(12_288)))).toBe(12_288);
    expect(await bellOf().ring(sized(12_288), signal)).toMatchObject({ outcome: 'accepted' });
    const starts = codex.starts().length;
    const permanent = (code: string) => ({ outcome: 'rejected', code, permanent: true });
    expect(await bellOf().ring(sized(12_289), signal)).toEqual(permanent('native_message_too_large'));
    expect(await bellOf().ring({ ...item(0), text: 'a\0b' }, signal)).toEqual(permanent('adapter_rejected'));
    expect(await bellOf(systemClock, codex.program, 'no-thread').ring(item(1), signal)).toEqual(
      permanent('thread_not_found'),
    );
    expect(codex.starts()).toHaveLength(starts);
    const gone = path.join(dir, 'gone');
    expect(await bellOf(systemClock, gone).ring(item(1), signal)).toEqual(
      permanent('codex_queue_process_failed'),
    );
  });

  it('refuses from then on where the thread keeps no queue', async () => {
    codex.play({ says: 'Error: ephemeral thread does not support queued submissions', exits: 1 });
    const bell = bellOf();
    expect(bell.state()).toEqual({ state: 'ready' });
    await bell.ring(item(1), signal);
    expect(bell.state()).toEqual({ state: 'refused', reason: 'thread_unavailable' });
  });

  it('[HOST-170] the limit of 16_384 bytes holds for an envelope to a Codex session, though a notice is queued', async () => {
    const desk = await openScene();
    await attach(desk, thread, { adapter_kind: 'codex-queue', bell: 'codex-queue', host_kind: 'codex' });
    const send = (bytes: number) =>
      post(desk, letter({ target_kind: 'session', recipient: thread, payload: 'x'.repeat(bytes) }));
    const said = refused(await send(17_000)).message;
    const around = Number(/envelope is (\d+) bytes/.exec(said)?.[1]) - 17_000;
    expect(refused(await send(16_385 - around)).code).toBe('native_message_too_large');
    // Nobody of this scene answers for the session; but the message was not too large for it.
    expect((await send(16_384 - around)) as object).not.toMatchObject({ code: 'native_message_too_large' });
  });
});

async function until(met: () => boolean): Promise<void> {
  for (const late = Date.now() + 10_000; !met(); await pause(10))
    if (Date.now() > late) throw new Error('not within 10 s');
}
