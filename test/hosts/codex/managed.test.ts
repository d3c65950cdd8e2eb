// `postbell host codex` with the real Codex: its own app-server and its own thread, beside an ordinary one.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hostProgram } from '../../../tools/hosts.mjs';
import { codexRunners } from '../../process/codex-runner.ts';
import { type Home, makeHome, until } from '../../process/home.ts';
import { finished } from '../../process/postbell.ts';
import { processesWith } from '../../process/processes.ts';
import { codexMailAgent } from '../codex-agent.ts';
import { type CodexModel, codexModelConfig, startCodexModel } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';

let home: Home;
let model: CodexModel;
let codex: ReturnType<typeof codexRunners>;
let codexHome: string;
/** Its model handles its mail, and does not just run a tool. */
let reads: boolean;
beforeEach(async () => {
  home = makeHome();
  reads = false;
  model = await startCodexModel((turn) => {
    const { newest, outputs } = turn;
    if (reads) return codexMailAgent(turn);
    if (newest.includes('an ordinary prompt')) return undefined;
    return outputs.length === 0
      ? { call: 'exec_command', args: { cmd: `exec sleep ${sleepSeconds}` } }
      : undefined;
  });
  codexHome = path.join(home.dir, 'codex');
  mkdirSync(codexHome);
  const config = [
    'sandbox_mode = "danger-full-access"',
    'approval_policy = "never"',
    codexModelConfig(model.url),
    `[projects.${JSON.stringify(home.project)}]`,
    'trust_level = "trusted"\n',
  ];
  writeFileSync(path.join(codexHome, 'config.toml'), config.join('\n'));
  const folder = path.dirname(hostProgram('codex') as string);
  Object.assign(home.env, {
    CODEX_HOME: codexHome,
    FIXTURE_API_KEY: 'none',
    PATH: `${folder}:${process.env.PATH}`,
  });
  codex = codexRunners(home);
});
afterEach(async () => {
  await home.end();
  await model.close();
});

/** Of no other process here. */
const sleepSeconds = 40_000 + (process.pid % 10_000);
const servers = () =>
  processesWith(`${home.dir}/data/runtime/codex-`).filter(({ words }) => words.includes('app-server'));
const toolRuns = () => processesWith(String(sleepSeconds)).length > 0;

/** Every file of threads that Codex keeps, but for those of `except`. */
const kept = (except: string): string[] =>
  readdirSync(path.join(codexHome, 'sessions'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.jsonl') && !name.includes(except))
    .map((name) => `${name} ${readFileSync(path.join(codexHome, 'sessions', name), 'utf8')}`);

describeWithHost('codex', 'the managed runner', () => {
  it('[HOST-189] makes a thread of its own, and leaves an ordinary one of the same directory as it is', async () => {
    const words = ['exec', '--skip-git-repo-check', 'an ordinary prompt'];
    const ended = await finished(hostProgram('codex') as string, words, home.env, home.project);
    expect(ended.code).toBe(0);
    const before = kept('none');
    expect(before).toHaveLength(1);
    const asked = model.requests.length;
    const runner = await codex.running();
    await codex.sendExact(runner.thread, 'x');
    await model.waitFor(({ thread }) => thread === runner.thread, 20_000);
    await until('its tool runs', toolRuns);
    runner.child.kill('SIGTERM');
    await runner.exited;
    expect(kept(runner.thread)).toEqual(before);
    expect(new Set(model.requests.slice(asked).map(({ thread }) => thread))).toEqual(
      new Set([runner.thread]),
    );
  });

  it('[HOST-268] CX15: thread, then registration; a notice begins a turn; it ends with Codex, and when it is replaced', async () => {
    const runner = await codex.running();
    expect(await codex.cards()).toMatchObject([
      { session_id: runner.thread, principal_id: 'builder', host_kind: 'codex', bell: 'codex-queue' },
    ]);
    const first = await codex.sendExact(runner.thread, 'a body that only the store holds');
    expect(first.native_delivery).toMatchObject({
      status: 'native_accepted',
      receipt: { thread_id: runner.thread, turn_id: expect.any(String), state: 'host_queued' },
    });
    const request = await model.waitFor(({ thread }) => thread === runner.thread, 20_000);
    const told = model.text(request);
    expect(told).toContain('[Postbell inbox notice]');
    expect(told).toContain(first.message_id);
    expect(told).not.toContain('a body that only');
    expect(processesWith('[Postbell inbox notice]')).toEqual([]);
    const { state, receipts } = await codex.facts(first);
    expect(state).toBe('host_queued');
    expect(receipts.map(({ receipt_kind }) => receipt_kind)).toEqual(['attempt', 'host_accept']);
    const [server] = servers();
    expect(server?.words.slice(1, 3)).toEqual(['app-server', '--listen']);
    process.kill(server?.pid as number, 'SIGKILL');
    expect(await runner.exited).toEqual({ code: 1, signal: null });
    expect(runner.stderr()).toContain('postbell: Codex was ended by SIGKILL; this session ends\n');
    expect([await codex.cards(), codex.sockets()]).toEqual([[], []]);
    const next = await codex.running();
    expect(next.thread).not.toBe(runner.thread);
    await codex.replace(next.thread);
    expect(await next.exited).toEqual({ code: 0, signal: null });
    expect(next.stderr()).toContain('replaced by a newer connection for this session; stopping.\n');
    expect(servers()).toEqual([]);
    expect(await codex.cards()).toMatchObject([{ session_id: next.thread, generation: 2 }]);
  });

  it('its model reads and takes in what it is rung for, without the plugin, by tools that name its principal\u2019s mail', async () => {
    reads = true;
    const runner = await codex.running();
    const [socket] = codex.sockets();
    expect(statSync(path.join(home.dir, 'data', 'runtime', socket ?? '')).mode & 0o777).toBe(0o600);
    const first = await codex.sendExact(runner.thread, 'for this thread');
    const second = await codex.send('builder', 'for whoever is builder');
    for (const sent of [first, second])
      await until(
        'it is taken in',
        async () => (await codex.facts(sent)).receipts.some(({ receipt_kind }) => receipt_kind === 'intake'),
        40_000,
      );
    expect(await codex.cards()).toHaveLength(1);
  });

  it('ends by a signal with status 0, in mid-turn, with the app-server and the tool that it runs', async () => {
    const runner = await codex.running();
    await codex.sendExact(runner.thread, 'x');
    await until('its tool runs', toolRuns, 20_000);
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    await until('its tool has ended', () => !toolRuns(), 2_000);
    expect(servers()).toEqual([]);
    expect([await codex.cards(), codex.sockets()]).toEqual([[], []]);
  });
});
