// A system without bells: what still works there, and what ends at once. The platform is a word that Node is made to say.

import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { runHook } from './hook.ts';
import { answer, postbell } from './postbell.ts';
import { processesOf } from './processes.ts';
import { openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
  const mock = path.join(home.dir, 'windows.cjs');
  writeFileSync(mock, "Object.defineProperty(process, 'platform', { value: 'win32' });\n");
  home.env.NODE_OPTIONS = `--require ${mock}`;
});
afterEach(() => home.end());

const data = () => home.env.POSTBELL_HOME as string;
const processes = () => processesOf(home.dir).map(({ pid }) => pid);
const env = { POSTBELL_RECIPIENT: 'bob', CLAUDE_CODE_SESSION_ID: 's1' };
const mail = () => answer(home.env, home.project, ['send', 'bob', '--json'], 'BODY');

describe('[HOST-020] on Windows', () => {
  it('hooks remind, and the gate asks', async () => {
    await mail();
    for (const event of ['session-start', 'prompt'])
      expect(
        (await runHook(home, event, { session_id: 's1', source: 'startup' }, { env })).context,
      ).toContain('1 message waiting for "bob"');
    const stop = { session_id: 's1', hook_event_name: 'Stop' };
    expect((await runHook(home, 'stop-gate', stop, { env })).block).toContain('1 message waiting for "bob"');
    expect((await runHook(home, 'stop-gate', stop, { env })).block).toBeUndefined();
  });

  it('tools work; nothing registers, rings, or starts a router', async () => {
    await mail();
    for (const channels of [{}, { POSTBELL_CHANNELS: '1' }]) {
      const session = await openSession(home, { ...env, ...channels });
      const { data: found } = await session.call('receive_messages', {});
      expect(found.messages).toMatchObject([{ payload: 'BODY' }]);
      expect(session.client.getServerCapabilities()).toEqual({ tools: {} });
      const sent = { action: 'send', sender: 'bob', recipient: 'carol', payload: 'x', idempotency_key: 'k' };
      expect((await session.call('message', sent)).isError).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(processes()).toEqual([session.pid]);
      await session.close();
    }
    const store = new BetterSqlite3(path.join(data(), 'postbell.db'), { readonly: true });
    home.atEnd(() => store.close());
    expect(store.prepare('SELECT count(*) AS n FROM connection').get()).toEqual({ n: 0 });
    expect(store.prepare('SELECT count(*) AS n FROM reservation').get()).toEqual({ n: 0 });
  });

  it('a hook of Codex starts no companion', async () => {
    const start = {
      session_id: '0199aaaa-0000-7000-8000-000000000001',
      cwd: home.project,
      source: 'startup',
    };
    const { code, records } = await runHook(
      home,
      'codex-session',
      { ...start, hook_event_name: 'SessionStart' },
      { env: { PLUGIN_ROOT: '/x' }, host: ['--host', 'codex'] },
    );
    expect([code, records]).toMatchObject([0, [{ outcome: 'skipped' }]]);
    expect(processes()).toEqual([]);
  });

  it('the listener ends with 0 at once, though its input stays open and mail waits', async () => {
    await mail();
    const before = readdirSync(data(), { recursive: true, encoding: 'utf8' }).sort();
    const listener = home.start(['wait'], env);
    const began = Date.now();
    expect((await listener.exited).code).toBe(0);
    expect(Date.now() - began).toBeLessThan(2_000);
    expect([listener.stdout(), listener.stderr()]).toEqual(['', '']);
    expect(readdirSync(data(), { recursive: true, encoding: 'utf8' }).sort()).toEqual(before);
  });

  it.each([
    ['host', 'claude', '--config', 'x.json'],
    ['host', 'codex', '--config', 'x.json'],
    ['host', 'acp', '--config', 'x.json'],
    ['claude'],
  ])('postbell %s %s ends with unsupported_platform and 1', async (...words) => {
    const { code, stdout, stderr } = await postbell(home.env, home.project, words);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^postbell: unsupported_platform: [^\n]+ \(durable messages work; wake-up does not\)\n$/,
    );
    expect(existsSync(data())).toBe(false);
    await until('nothing runs', () => processes().length === 0);
  });
});
