// Every process that serves one session and nothing else, when another process registers that session.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { channelHost } from './channel-host.ts';
import { fakeCodex } from './codex.ts';
import { codexRunners } from './codex-runner.ts';
import { type Started, until } from './home.ts';
import { runHook } from './hook.ts';
import { answer, root } from './postbell.ts';
import { companionsOf } from './processes.ts';
import { ask } from './router-line.ts';

let acp: AcpHome;
beforeEach(async () => {
  acp = await acpHome();
});
afterEach(() => acp.home.end());

const line = 'replaced by a newer connection for this session; stopping.\n';
const thread = '0199aaaa-0000-7000-8000-000000000001';

/** Another process registers the session as it is registered. */
async function replace(session_id: string, adapter_kind: string): Promise<void> {
  const card = (await acp.cards()).find((one) => one.session_id === session_id);
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  const { project, principal_id, host_kind, bell } = card as Record<string, string>;
  const who = { project, session_id, principal_id, host_kind, bell, adapter_kind };
  const data = acp.home.env.POSTBELL_HOME as string;
  const frame = { type: 'register', postbell_version: version, ...who };
  expect((await ask(data, frame)).error).toBeUndefined();
}

it('[SES-043] a runner of Claude, Codex or an ACP agent says its line and exits 0; a companion logs it and ends', async () => {
  const { home } = acp;
  const fake = fakeCodex(home.dir);
  home.env.PATH = `${fake.bin}:${home.env.PATH}`;
  const { config_path } = await answer(home.env, home.project, [
    'agent',
    'setup',
    'claude',
    '--principal',
    'builder',
    '--json',
  ]);
  const claude = channelHost(home, ['host', 'claude', '--config', String(config_path)], {
    CLAUDE_CODE_SESSION_ID: 's1',
  });
  await claude.begin();
  const agent = await acp.running();
  const codex = await codexRunners(home).running();
  const start = { session_id: thread, cwd: home.project, hook_event_name: 'SessionStart', source: 'startup' };
  const hooked = { env: { PLUGIN_ROOT: '/x' }, host: ['--host', 'codex'] };
  await runHook(home, 'codex-session', start, hooked);
  await until('all are registered', async () => (await acp.cards()).length === 4);
  const runners: [Started, string, string][] = [
    [claude, 's1', 'claude-channel'],
    [codex, codex.thread, 'codex-app-server'],
    [agent, agent.session, 'acp'],
  ];
  for (const [runner, session, adapter] of runners) {
    const before = runner.stderr();
    await replace(session, adapter);
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(runner.stderr()).toBe(`${before}${line}`);
  }
  expect(companionsOf(home.dir)).toHaveLength(1);
  await replace(thread, 'codex-queue');
  await until('the companion has ended', () => companionsOf(home.dir).length === 0);
  const log = readFileSync(path.join(home.env.POSTBELL_HOME as string, 'codex-companion.log'), 'utf8');
  expect(log.split(line)).toHaveLength(2);
});
