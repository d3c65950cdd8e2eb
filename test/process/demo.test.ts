// The demo is a real run: it ends by itself, and nothing of it is left.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { alive, postbell, program } from './postbell.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'pb-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('postbell demo', () => {
  it('that nobody reads ends, and leaves nothing', async () => {
    const env = { PATH: process.env.PATH as string, HOME: '/nonexistent', TMPDIR: dir };
    const child = spawn('sh', ['-c', `exec node ${program} demo > /dev/full`], { cwd: dir, env });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(1);
    expect(stderr).not.toContain('    at ');
    expect(readdirSync(dir)).toEqual([]);
  });

  it('that can make no home says so', async () => {
    const env = { PATH: process.env.PATH as string, HOME: '/nonexistent', TMPDIR: '/nonexistent' };
    expect(await postbell(env, dir, ['demo'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^postbell: store_unwritable: no directory can be made in \/nonexistent/),
    });
  });

  it('sends, wakes, kills two processes, reads, answers, and says what each step proves', async () => {
    const env = {
      PATH: process.env.PATH as string,
      HOME: '/nonexistent',
      TMPDIR: dir,
      POSTBELL_RECIPIENT: 'x',
    };
    const { code, stdout, stderr } = await postbell(env, dir, ['demo']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/The listener wakes its host: exit 2 /);
    expect(stdout).toMatch(/receive_messages and gets 1: "please review the parser"/);
    for (const kind of ['attempt', 'host_accept', 'intake', 'ack'])
      expect(stdout).toMatch(new RegExp(`T[\\d:.]+Z {2}${kind} `));
    expect(stdout.trimEnd()).toMatch(/Two sent, two taken in, two processes killed, nothing lost\.$/);
    const pids = [...stdout.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));
    expect(new Set(pids).size).toBe(3);
    expect(pids.filter(alive)).toEqual([]);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('takes no words', async () => {
    const { code, stderr } = await postbell({ PATH: process.env.PATH as string }, dir, ['demo', 'now']);
    expect([code, stderr]).toEqual([1, 'postbell: usage: demo takes no words (see --help)\n']);
  });
});
