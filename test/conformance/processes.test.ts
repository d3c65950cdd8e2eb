// The rows of the suite that speak of processes: real ones, killed with -9.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Desk } from '../../src/mailbox/desk.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import { openStore } from '../../src/store/open.ts';
import { ok, posted } from '../contract/desk.ts';
import { bundleChild } from '../contract/process.ts';
import { type Home, makeHome, until } from '../process/home.ts';
import { alive, answer, program } from '../process/postbell.ts';
import { liveCards } from '../process/session.ts';

const kinds = ['listener', 'channel', 'codex-queue', 'acp'];

let entry: string;
let home: Home;
beforeAll(async () => {
  entry = await bundleChild(new URL('child.ts', import.meta.url));
});
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const data = (): string => home.env.POSTBELL_HOME as string;
const record = (): string => path.join(home.dir, 'host');

async function openDesk(): Promise<Desk> {
  const file = path.join(data(), 'postbell.db');
  const store = await openStore({ path: file, clock: systemClock, random: systemRandom });
  home.atEnd(() => store.close());
  return {
    store,
    clock: systemClock,
    random: systemRandom,
    wake: fileWake(path.join(data(), 'runtime', 'mail')),
    router: { notify: async () => ({ delivered: false }), discover: async () => [] },
  };
}

interface Talking {
  pid: number;
  kill(): void;
  lines(): string[];
}

/** Starts a process whose lines are read; it ends with the home at the latest. */
function talking(words: string[], more: Record<string, string> = {}): Talking {
  const child = spawn(process.execPath, words, {
    env: { ...home.env, ...more },
    cwd: home.project,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  home.atEnd(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += String(chunk)));
  return {
    pid: child.pid as number,
    kill: () => void child.kill('SIGKILL'),
    lines: () => said.split('\n').slice(0, -1),
  };
}

const rang = (process_: Talking): number[] =>
  process_
    .lines()
    .filter((line) => line.startsWith('rang '))
    .map((line) => Number(line.slice(5)));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(kinds)('two processes of one session with the bell %s', (kind) => {
  it('[HOST-026, INB-048] C6: one rings; kill -9 of it, and the other has taken over within a second', async () => {
    const both = [talking([entry, kind, record()]), talking([entry, kind, record()])];
    await until('both run', () => both.every((one) => one.lines().length > 0));
    const desk = await openDesk();
    const { message_id } = await posted(desk);
    const count = (): number => both.flatMap(rang).length;
    await until('one rings', () => count() > 0, 3_000);
    await pause(1_200);
    expect(count()).toBe(1);
    const [first, second] = rang(both[0] as Talking).length === 1 ? both : both.reverse();
    const messages = [{ sender: 'local', msg_id: message_id }];
    ok(
      await acknowledge(
        desk,
        { project: 'shop', recipient: 'bob', messages },
        { transport: 'cli', source_host: 'cli' },
      ),
    );
    first?.kill();
    const killedAt = Date.now();
    // No touch: nothing but the lock tells the other.
    await posted({ ...desk, wake: { touch: () => {}, watch: () => () => {} } });
    await until('the other rings', () => rang(second as Talking).length > 0, 3_000);
    expect((rang(second as Talking)[0] as number) - killedAt).toBeLessThan(1_000);
    await pause(500);
    expect(count()).toBe(2);
    if (kind !== 'listener') expect(readFileSync(record(), 'utf8').split('\n')).toHaveLength(3);
  });
});

/** A host that starts the processes of its session over pipes, says their ids, and does nothing. */
const hostScript = `
const { spawn } = require('node:child_process');
const [program, ...words] = process.argv.slice(1);
const start = (words, input, env) => {
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'ignore', 'ignore'], env: { ...process.env, ...env } });
  child.stdin.write(input);
  console.log('started ' + child.pid);
  return child;
};
if (words.length > 0) start([program, ...words], '');
else {
  const message = (object) => JSON.stringify({ jsonrpc: '2.0', ...object }) + '\\n';
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'fixture', version: '1' } };
  start([program, 'mcp'], message({ id: 1, method: 'initialize', params }) + message({ method: 'notifications/initialized' }));
  start([program, 'wait'], '', { CLAUDE_PID: String(process.pid) }).stdin.end(JSON.stringify({ session_id: 's1' }));
}
setInterval(() => {}, 1_000);
`;

describe.each([...kinds, 'the product'])('a host killed with SIGKILL whose bell is %s', (kind) => {
  it('[HOST-033] C13: leaves no process after 10 s, a session that is not live, and its mail waiting', async () => {
    home.start(['router']);
    await until('a router runs', () => existsSync(path.join(data(), 'router-v1.sock')));
    const product = kind === 'the product';
    const project = product
      ? ((await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string)
      : 'shop';
    const more = {
      CLAUDE_CODE_SESSION_ID: 's1',
      POSTBELL_RECIPIENT: 'bob',
      CLAUDE_PROJECT_DIR: home.project,
    };
    const words = product
      ? ['-e', hostScript, program]
      : ['-e', hostScript, entry, kind, record(), 'attached'];
    const host = talking(words, product ? more : {});
    await until('it started them', () => host.lines().length === (product ? 2 : 1));
    const pids = host.lines().map((line) => Number(line.slice('started '.length)));
    home.atEnd(() => {
      for (const pid of pids.filter(alive)) process.kill(pid, 'SIGKILL');
    });
    await liveCards(home, project, 1);
    const desk = await openDesk();
    const { message_id } = await posted(desk, { project, status: 'update' });
    expect(pids.map(alive)).toEqual(pids.map(() => true));
    host.kill();
    const killedAt = Date.now();
    await until('they are gone', () => !pids.some(alive), 10_000);
    await liveCards(home, project, 0);
    expect(Date.now() - killedAt).toBeLessThan(10_000);
    const caller = { transport: 'cli', source_host: 'cli' } as const;
    const { messages } = ok(receive(desk, { project, recipient: 'bob' }, caller));
    expect(messages).toMatchObject([{ message_id }]);
  });
});
