// What hooks of Codex say of waiting mail: whose, and how much of it.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import { gateInstruction } from '../../src/protocol/reminder.ts';
import { openStore } from '../../src/store/open.ts';
import { posted } from '../contract/desk.ts';
import { type Home, makeHome } from './home.ts';
import { runHook } from './hook.ts';
import { answer } from './postbell.ts';

const thread = '0199aaaa-0000-7000-8000-000000000001';
const codex = ['--host', 'codex'];

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const payload = (event: string) => ({
  session_id: thread,
  cwd: home.project,
  hook_event_name: event,
  source: 'startup',
  turn_id: 'turn-1',
});

it('[HOST-063] the config of Claude Code counts for no hook of Codex', async () => {
  const hosts = path.join(home.env.POSTBELL_HOME as string, 'hosts');
  await answer(home.env, home.project, ['send', 'bob', '--json'], 'x');
  await answer(home.env, home.project, ['send', `codex-thread-${thread}`, '--json'], 'x');
  mkdirSync(hosts, { mode: 0o700 });
  const config = { version: 1, host: 'claude', principal_id: 'bob' };
  writeFileSync(path.join(hosts, 'claude.json'), JSON.stringify(config), { mode: 0o600 });
  expect((await runHook(home, 'prompt', { session_id: 's1' })).context).toContain('waiting for "bob"');
  for (const [event, name] of [
    ['session-start', 'SessionStart'],
    ['prompt', 'UserPromptSubmit'],
  ] as const) {
    const { stdout, stderr } = await runHook(home, event, payload(name), { host: codex });
    expect(stdout).toContain(`codex-thread-${thread}`);
    expect(stdout + stderr).not.toContain('bob');
  }
  // Codex has no Stop gate.
  expect((await runHook(home, 'stop-gate', payload('Stop'), { host: codex })).stdout).toBe('');
});

it('[HOST-177] the text of one hook stays under 4,000 characters, with 200 messages in 50 projects', async () => {
  const data = home.env.POSTBELL_HOME as string;
  mkdirSync(path.join(data, 'runtime'), { recursive: true, mode: 0o700 });
  const store = await openStore({
    path: path.join(data, 'postbell.db'),
    clock: systemClock,
    random: systemRandom,
  });
  const desk = {
    store,
    clock: systemClock,
    random: systemRandom,
    wake: fileWake(path.join(data, 'runtime', 'mail')),
    router: { notify: async () => ({ delivered: false }) as const, discover: async () => [] },
  };
  // A quotation mark takes two characters in a text.
  const recipient = 'r'.repeat(130) + '"'.repeat(70);
  for (let nth = 0; nth < 200; nth += 1)
    await posted(desk, {
      project: `${nth % 50}-${'p'.repeat(120)}${'"'.repeat(70)}`,
      recipient,
      idempotency_key: `k${nth}`,
      payload: 'x'.repeat(1_000),
    });
  store.close();
  const claude = ['--host', 'claude'];
  for (const [event, name, host] of [
    ['session-start', 'SessionStart', codex],
    ['prompt', 'UserPromptSubmit', codex],
    ['session-start', 'SessionStart', claude],
    ['prompt', 'UserPromptSubmit', claude],
    ['stop-gate', 'Stop', claude],
  ] as const) {
    const env = { POSTBELL_RECIPIENT: recipient };
    const of = { host: [...host], env };
    const { context, block = '' } = await runHook(home, event, payload(name), of);
    const text = context + block;
    expect(text).toContain('4 messages waiting for');
    // Lines that would be over it are left out, and that is said.
    expect(text).toMatch(/Postbell: [12] more lines? left out\.$/m);
    // What to do about a blocked end is not among them.
    expect(text.endsWith(gateInstruction)).toBe(event === 'stop-gate');
    expect(text.length).toBeGreaterThan(3_000);
    expect(text.length).toBeLessThan(4_000);
  }
}, 30_000);
