// A command whose answer nobody takes says so in one line, and has done what it was asked for.

import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, program } from './postbell.ts';
import { typed } from './typed.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const letter = { project: 'p', sender: 'a', recipient: 'b', idempotency_key: 'k', payload: 'x' };

/** Its stdout goes to a full device, or to a pipe whose reader has gone. */
function lost(
  words: string[],
  where: 'full' | 'gone',
  input = 'x',
): Promise<{ code: number | null; stderr: string }> {
  const full = where === 'full' ? openSync('/dev/full', 'w') : undefined;
  const child = spawn(process.execPath, [program, ...words], {
    cwd: home.project,
    env: home.env,
    stdio: ['pipe', full ?? 'pipe', 'pipe'],
  });
  home.atEnd(() => child.kill('SIGKILL'));
  if (full !== undefined) closeSync(full);
  child.stdout?.destroy();
  let stderr = '';
  child.stderr?.on('data', (chunk) => (stderr += String(chunk)));
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stderr })));
}

it.each(['full', 'gone'] as const)('where stdout is %s', async (where) => {
  const [send] = typed('send', letter);
  const line = await lost(send, where);
  expect(line.code).toBe(1);
  expect(line.stderr).toMatch(
    /^postbell: internal_error: the answer cannot be written \(E[A-Z]+\); [^\n]*\n$/,
  );
  const json = await lost(['message', 'poll', '--project', 'p', '--recipient', 'b', '--json'], where);
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stderr).error).toMatchObject({ code: 'internal_error' });
  const { events } = await answer(home.env, home.project, [
    'message',
    'poll',
    '--project',
    'p',
    '--recipient',
    'b',
  ]);
  expect(events).toHaveLength(1);
});

it('of a hook ends it with 0 all the same, and of a live view ends that and its router in order', async () => {
  const host = spawn('sleep', ['60']);
  home.atEnd(() => host.kill());
  Object.assign(home.env, { CLAUDE_PID: String(host.pid) });
  const heard = await lost(
    ['hook', 'session-start', '--host', 'claude'],
    'gone',
    '{"session_id":"s1","source":"startup"}',
  );
  expect(heard).toEqual({ code: 0, stderr: 'postbell: internal_error\n' });
  expect(await lost(['up'], 'gone')).toEqual({ code: 0, stderr: '' });
  expect(readdirSync(home.env.POSTBELL_HOME as string).filter((name) => name.endsWith('.sock'))).toEqual([]);
});
