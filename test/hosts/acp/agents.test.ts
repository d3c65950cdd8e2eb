// Real ACP agents as `postbell host acp` starts them: rung twice in one session, they read and acknowledge by our tools.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type HostName, hostNode, hostProgram } from '../../../tools/hosts.mjs';
import { type Home, makeHome, until } from '../../process/home.ts';
import { answer, type Env, factsOf } from '../../process/postbell.ts';
import { typed } from '../../process/typed.ts';
import { describeWithHost } from '../installed.ts';
import { type AcpModel, startAcpModel } from './model.ts';

let home: Home;
let model: AcpModel;
beforeEach(async () => {
  model = await startAcpModel();
  home = makeHome();
  home.start(['router']);
});
afterEach(async () => {
  await home.end();
  await model.close();
});

/** How an agent is started offline: its words, its variables, what the config says beside them. */
interface Setup {
  words: string[];
  env: Env;
  config?: object;
}

const place = (...parts: string[]): string => path.join(home.dir, ...parts);
const program = (name: HostName): string => hostProgram(name) as string;

const setups: Partial<Record<HostName, () => Setup>> = {
  'gemini-cli': () => ({
    words: [program('gemini-cli'), '--acp'],
    env: { GEMINI_API_KEY: 'x', GOOGLE_GEMINI_BASE_URL: model.url, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    config: { host: 'gemini' },
  }),
  opencode: () => {
    const provider = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: `${model.url}/v1`, apiKey: 'x' },
      models: { 'fixture-1': {} },
    };
    const models = { model: 'fixture/fixture-1', small_model: 'fixture/fixture-1' };
    writeFileSync(
      path.join(home.project, 'opencode.json'),
      JSON.stringify({ provider: { fixture: provider }, ...models }),
    );
    return { words: [program('opencode'), 'acp'], env: { OPENCODE_DISABLE_MODELS_FETCH: '1' } };
  },
  'codex-acp': () => {
    const codex = place('codex');
    mkdirSync(codex);
    const lines = [
      'model = "fixture"',
      'model_provider = "fixture"',
      '[model_providers.fixture]',
      'name = "fixture"',
      `base_url = "${model.url}/v1"`,
      'wire_api = "responses"',
      'env_key = "FIXTURE_KEY"',
    ];
    writeFileSync(path.join(codex, 'config.toml'), lines.join('\n'));
    return {
      words: [program('codex-acp')],
      env: { CODEX_HOME: codex, FIXTURE_KEY: 'x' },
      config: { mode: 'read-only' },
    };
  },
  'claude-agent-acp': () => ({
    words: [hostNode('claude-agent-acp'), program('claude-agent-acp')],
    env: {
      CLAUDE_CONFIG_DIR: place('claude'),
      ANTHROPIC_API_KEY: 'x',
      ANTHROPIC_BASE_URL: model.url,
      IS_SANDBOX: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
    },
    config: { mode: 'default' },
  }),
};

async function rungTwice(name: HostName): Promise<void> {
  const { words, env, config = {} } = (setups[name] as () => Setup)();
  const found = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  const project = found.project as string;
  const folder = place('data', 'hosts');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, 'acp.json');
  const base = { version: 1, host: 'acp', principal_id: 'builder', workspace: home.project };
  writeFileSync(file, JSON.stringify({ ...base, command: words, ...config }), { mode: 0o600 });
  const runner = home.start(['host', 'acp', '--config', file], env);
  const said = /session (\w+) of .* gets the mail/;
  const isReady = (): boolean => said.test(runner.stderr()) || runner.child.exitCode !== null;
  await until('it is ready', isReady, 60_000);
  const session = said.exec(runner.stderr())?.[1];
  expect(runner.stderr()).not.toContain('tools_not_loaded');
  if (session === undefined) throw new Error(runner.stderr());
  const sent: string[] = [];
  for (const text of ['SENTINEL one', 'SENTINEL two']) {
    const to = { project, sender: 'alice', recipient: session, target_kind: 'session' };
    const [send, input] = typed('send', { ...to, payload: text, idempotency_key: text });
    const { message_id, native_delivery } = await answer(home.env, home.project, send, input);
    expect(native_delivery).toMatchObject({ status: 'native_accepted', adapter_kind: 'acp' });
    sent.push(message_id as string);
    const scope = { project, recipient: session, message_id: message_id as string };
    const kinds = async (): Promise<string[]> =>
      (await factsOf(home.env, home.project, scope)).receipts.map(({ receipt_kind }) => receipt_kind);
    await until('it is read and acknowledged', async () => (await kinds()).includes('ack'), 60_000);
    expect((await kinds()).sort()).toEqual(['ack', 'attempt', 'host_accept', 'intake']);
    const notices = model.bodies.filter((body) => body.includes('[Postbell inbox notice]'));
    expect(notices.length).toBeGreaterThan(0);
    expect(notices[0]).not.toContain('SENTINEL');
    expect(model.bodies.some((body) => body.includes(text))).toBe(true);
  }
  expect(new Set(sent).size).toBe(2);
  runner.child.kill('SIGTERM');
  expect(await runner.exited).toEqual({ code: 0, signal: null });
}

for (const name of ['gemini-cli', 'opencode'] as const)
  describeWithHost(name, 'an ACP agent', () => {
    it('[HOST-276] AC7: two rings in one session, read and acknowledged by tool', () => rungTwice(name));
  });

// Half a gigabyte each, which is not installed everywhere.
if (!process.env.CI)
  for (const name of ['codex-acp', 'claude-agent-acp'] as const)
    describeWithHost(name, 'an ACP agent', () => {
      it('[HOST-277] AC8: two rings in one session, read and acknowledged by tool', () => rungTwice(name));
    });
