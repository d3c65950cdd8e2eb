// What was answered survives kill -9 of whoever answered.

import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, program } from './postbell.ts';

const rounds = 50;

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

/** Sends, and kills the sender the moment its answer begins to arrive. */
function sendAndKill(key: string): Promise<string> {
  const words = [
    'message',
    'send',
    '--project',
    'p',
    '--sender',
    's',
    '--recipient',
    'r',
    '--idempotency-key',
    key,
    '--payload-stdin',
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...words], { env: home.env, cwd: home.project });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      child.kill('SIGKILL');
    });
    child.on('error', reject);
    child.on('close', () => resolve(text));
    child.stdin.end(`body ${key}`);
  });
}

describe('kill -9', () => {
  it(`leaves every answered send in the store, ${rounds} times`, async () => {
    const answered: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const text = await sendAndKill(`k${round}`);
      const id = /"message_id":"([^"]+)"/.exec(text)?.[1];
      expect(id).toBeDefined();
      answered.push(id as string);
    }
    const { events } = await answer(home.env, home.project, [
      'message',
      'poll',
      '--project',
      'p',
      '--recipient',
      'r',
      '--limit',
      '100',
    ]);
    expect((events as { message_id: string }[]).map(({ message_id }) => message_id)).toEqual(answered);
    for (const round of [0, 24, 49]) {
      const scope = ['--project', 'p', '--recipient', 'r', '--message-id', answered[round] as string];
      expect(await answer(home.env, home.project, ['message', 'fetch', ...scope])).toMatchObject({
        payload: `body k${round}`,
      });
    }
  }, 60_000);
});
