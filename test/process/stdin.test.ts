// The payload comes from stdin, whole or in pieces, and is never echoed.

import { spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, postbell, program } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const send = (...more: string[]): string[] => [
  ...'message send --project p --sender a --recipient b --payload-stdin --idempotency-key'.split(' '),
  `k${more.join('')}`,
  ...more,
];

describe('the payload on stdin', () => {
  it('[MSG-172] is joined before it is decoded: a character split over two chunks survives', async () => {
    const child = spawn(process.execPath, [program, ...send()], { env: home.env, cwd: home.project });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    const bytes = Buffer.from('caf\u00e9 \u{1f426}');
    for (const at of [4, 8]) {
      child.stdin.write(bytes.subarray(at === 4 ? 0 : 4, at));
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    child.stdin.end(bytes.subarray(8));
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0);
    expect(text).not.toContain('caf');
    const { message_id } = JSON.parse(text) as { message_id: string };
    const one = ['--project', 'p', '--recipient', 'b', '--message-id', message_id];
    expect((await answer(home.env, home.project, ['message', 'fetch', ...one])).payload).toBe(
      'caf\u00e9 \u{1f426}',
    );
  });

  it('[MSG-172] is refused where it is no UTF-8, or no JSON where that was said, and not a word of it is echoed', async () => {
    const bad = spawn(process.execPath, [program, ...send()], { env: home.env, cwd: home.project });
    let err = '';
    bad.stderr.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
    bad.stdin.end(Buffer.concat([Buffer.from('SENTINEL-7 '), Buffer.from([0xff])]));
    expect(await new Promise((resolve) => bad.on('close', resolve))).toBe(1);
    const json = await postbell(
      home.env,
      home.project,
      send('--content-type', 'application/json'),
      '{"SENTINEL-7"',
    );
    expect(json.code).toBe(1);
    for (const said of [err, json.stderr]) {
      expect(said).toMatch(/^postbell: invalid_request: /);
      expect(said).not.toContain('SENTINEL');
    }
    expect(
      (await answer(home.env, home.project, ['message', 'poll', '--project', 'p', '--recipient', 'b']))
        .events,
    ).toEqual([]);
  });
});
