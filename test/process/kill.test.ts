// What was answered survives kill -9 of whoever answered.

import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, program } from './postbell.ts';

const rounds = 200;

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

/** Sends, and kills the sender the moment its answer begins to arrive: on stdout, or on stderr where it failed. */
function sendAndKill(key: string, more: string[] = []): Promise<string> {
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
    ...more,
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...words], { env: home.env, cwd: home.project });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
        child.kill('SIGKILL');
      });
    child.on('error', reject);
    child.on('close', () => resolve(text));
    child.stdin.end(`body ${key}`);
  });
}

describe('kill -9', () => {
  it(`[MSG-004] leaves every answered send in the store, ${rounds} times`, async () => {
    const answered: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const text = await sendAndKill(`k${round}`);
      const id = /"message_id":"([^"]+)"/.exec(text)?.[1];
      expect(id).toBeDefined();
      answered.push(id as string);
    }
    const stored: string[] = [];
    const poll = ['message', 'poll', '--project', 'p', '--recipient', 'r', '--limit', '100'];
    for (let cursor: string | undefined; stored.length < rounds; ) {
      const more = cursor === undefined ? [] : ['--cursor', cursor];
      const { events, next_cursor } = await answer(home.env, home.project, [...poll, ...more]);
      const page = events as { message_id: string }[];
      if (page.length === 0) break;
      stored.push(...page.map(({ message_id }) => message_id));
      cursor = next_cursor as string;
    }
    expect(stored).toEqual(answered);
    for (const round of [0, 99, rounds - 1]) {
      const scope = ['--project', 'p', '--recipient', 'r', '--message-id', answered[round] as string];
      expect(await answer(home.env, home.project, ['message', 'fetch', ...scope])).toMatchObject({
        payload: `body k${round}`,
      });
    }
  }, 60_000);

  it('[MSG-004] leaves what a failed send said that it keeps', async () => {
    const kept: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      const text = await sendAndKill(`k${round}`, ['--target-kind', 'session']);
      const id = /^postbell: router_unreachable: .*the message is kept as (msg_\w+)/.exec(text)?.[1];
      expect(id).toBeDefined();
      kept.push(id as string);
    }
    const poll = ['message', 'poll', '--project', 'p', '--recipient', 'r'];
    const { events } = await answer(home.env, home.project, poll);
    expect((events as { message_id: string }[]).map(({ message_id }) => message_id)).toEqual(kept);
  }, 60_000);
});
