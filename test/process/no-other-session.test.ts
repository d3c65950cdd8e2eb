// Where a session cannot be rung nothing is started, resumed or replaced in its place.

import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { queueBell } from '../../src/hosts/codex/bell.ts';
import { queueNotice } from '../../src/hosts/codex/queue.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { RingItem } from '../../src/ports/bell.ts';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { codexRunners } from './codex-runner.ts';
import { type FakeHosts, fakeHosts } from './fake-hosts.ts';
import { postbell } from './postbell.ts';
import { processesOf } from './processes.ts';
import { typed } from './typed.ts';

const thread = '0199aaaa-0000-7000-8000-000000000001';
let acp: AcpHome;
let fakes: FakeHosts;
let env: { PATH: string; HOME: string };
beforeEach(async () => {
  acp = await acpHome();
  fakes = fakeHosts(acp.home.dir);
  env = { PATH: `${fakes.bin}:${acp.home.env.PATH}`, HOME: acp.home.dir };
});
afterEach(() => acp.home.end());

const processes = () => processesOf(acp.home.dir).map(({ pid }) => pid);
const argv = () => fakes.starts('codex').map((one) => one.argv[0]);
const settle = () => new Promise((resolve) => setTimeout(resolve, 1_500));
const item: RingItem = {
  content: 'notice',
  notification_id: 'ab12ab12ab12',
  text: '[Postbell inbox notice]',
  covered: [],
  session_id: thread,
};
const exact = async (recipient: string) => {
  const letter = { project: acp.project, sender: 'a', recipient, payload: 'x', idempotency_key: recipient };
  const [words, input] = typed('send', { ...letter, target_kind: 'session' });
  return (await postbell({ ...acp.home.env, ...env }, acp.home.project, words, input)).stderr;
};

describe('[HOST-007] nothing takes the place of', () => {
  it.each([
    ['that is missing', { says: 'no rollout found for thread id x', exits: 1 }, 'thread_not_found'],
    ['that keeps nothing', { says: 'ephemeral thread does not support it', exits: 1 }, 'thread_unavailable'],
    [
      'whose queue is full',
      { says: 'queue cannot contain more than 100 submissions', exits: 1 },
      'adapter_queue_full',
    ],
    ['whose Codex fails', { exits: 2 }, 'codex_queue_process_failed'],
    ['whose Codex is not there', undefined, 'codex_queue_process_failed'],
  ])('a thread %s: rejected', async (_what, answer, code) => {
    if (answer !== undefined) fakes.queue(answer);
    const file = answer === undefined ? path.join(acp.home.dir, 'gone') : path.join(fakes.bin, 'codex');
    // Where its own is gone, the one that PATH finds is asked.
    const environment = answer === undefined ? { ...env, PATH: '/usr/bin:/bin' } : env;
    const queue = (notice: string) => queueNotice(systemClock, { file, environment }, { thread, notice });
    const before = processes();
    const outcome = await queueBell({ thread, queue }).ring(item, new AbortController().signal);
    expect(outcome).toMatchObject({ outcome: 'rejected', code });
    expect(processes()).toEqual(before);
    expect(argv()).toEqual(answer === undefined ? [] : ['queue']);
  });

  it('a bell that is closed, or a thread whose id is none: rejected, and no program runs', async () => {
    const queue = (notice: string) =>
      queueNotice(systemClock, { file: path.join(fakes.bin, 'codex'), environment: env }, { thread, notice });
    const bell = queueBell({ thread, queue });
    bell.close('the session ends');
    for (const one of [bell, queueBell({ thread: 'a name', queue })])
      expect(await one.ring(item, new AbortController().signal)).toMatchObject({ outcome: 'rejected' });
    expect(argv()).toEqual([]);
  });

  it('an agent, or a Codex, that has ended: the runner ends, and a send to it is refused', async () => {
    const before = processes();
    const agent = await acp.running();
    const codex = codexRunners(acp.home);
    const managed = await codex.running({ PATH: env.PATH });
    const pid = acp.log('started')[0]?.pid as number;
    process.kill(pid, 'SIGKILL');
    const server = processesOf(acp.home.dir).find(({ words }) => words.includes('--listen'));
    process.kill(server?.pid as number, 'SIGKILL');
    expect([(await agent.exited).code, (await managed.exited).code]).toEqual([1, 1]);
    for (const session of [agent.session, managed.thread])
      expect(await exact(session)).toContain('recipient_unavailable');
    await settle();
    expect(processes()).toEqual(before);
    expect([acp.log('started').length, argv()]).toEqual([1, ['app-server']]);
  });

  it('a session in a workspace that is gone: nothing begins', async () => {
    const gone = path.join(acp.home.dir, 'gone');
    acp.configure({ workspace: gone });
    const codex = codexRunners(acp.home);
    codex.configure({ workspace: gone });
    const before = processes();
    for (const runner of [acp.run(), codex.run({ PATH: env.PATH })])
      expect((await runner.exited).code).toBe(1);
    expect(processes()).toEqual(before);
    expect([acp.log(), argv(), await acp.cards()]).toEqual([[], [], []]);
  });
});
