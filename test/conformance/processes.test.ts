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
import { locksIn } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';
import { ok, posted } from '../contract/desk.ts';
import { bundleChild } from '../contract/process.ts';
import { type Home, makeHome, until } from '../process/home.ts';
import { alive, answer, postbell, program } from '../process/postbell.ts';
import { liveCards } from '../process/session.ts';
import { typed } from '../process/typed.ts';

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
/** How late a timer may be on a machine that runs other tests beside this one. */
const slackMs = 500;
/** What the commits of a ring cost on this disk just now, so that a busy machine fails no promise about our own time. */
async function diskMs(desk: Desk): Promise<number> {
  const began = Date.now();
  for (let n = 0; n < 3; n += 1) await desk.store.write((tx) => tx.identity.link(`unused-${n}`, 'unused'));
  return Date.now() - began;
}
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
    await pause(100);
    // No touch: the one that rings does not hear of it, and nothing but the lock tells the other.
    await posted({ ...desk, wake: { touch: () => {}, watch: () => () => {} } });
    first?.kill();
    const killedAt = Date.now();
    const disk = await diskMs(desk);
    await until('the other rings', () => rang(second as Talking).length > 0, 15_000);
    expect((rang(second as Talking)[0] as number) - killedAt).toBeLessThan(1_000 + slackMs + disk);
    await pause(500);
    expect(count()).toBe(2);
    if (kind !== 'listener') expect(readFileSync(record(), 'utf8').split('\n')).toHaveLength(3);
  });
});

describe('a process of a session', () => {
  const noTouch = { touch: () => {}, watch: () => () => {} };
  const ready = (one: Talking) => until('it runs', () => one.lines().length > 0);
  const given = (): number =>
    existsSync(record()) ? readFileSync(record(), 'utf8').split('\n').length - 1 : 0;

  it('[INB-035] killed with -9 in the midst of its ring: another rings anew within 1 s of the retry time', async () => {
    const silent = talking([entry, 'codex-queue', record(), 'silent']);
    await ready(silent);
    const desk = await openDesk();
    await posted(desk);
    await until('it rings', () => given() === 1);
    silent.kill();
    const newest = () => desk.store.read((tx) => tx.notices.newest('s1'));
    expect(newest()?.state).toBe('preparing');
    const id = newest()?.notification_id as string;
    // The 30 s, shortened.
    const retryAt = Date.now() + 3_000;
    await desk.store.write((tx) => tx.notices.setEnd(id, retryAt - 30_000, retryAt));
    const other = talking([entry, 'codex-queue', record()]);
    await ready(other);
    const disk = await diskMs(desk);
    await until('it rings', () => rang(other).length > 0, 15_000);
    const late = (rang(other)[0] as number) - retryAt;
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(1_000 + slackMs + disk);
    expect(given()).toBe(2);
    expect(newest()?.notification_id).not.toBe(id);
  });

  it('[INB-047] rings by itself where it holds the lock; what the router hands over is rung by who got it', async () => {
    home.start(['router']);
    await until('a router runs', () => existsSync(path.join(data(), 'router-v1.sock')));
    const holder = talking([entry, 'listener', record()]);
    await ready(holder);
    const connected = talking([entry, 'listener', record(), 'attached']);
    await liveCards(home, 'shop', 1);
    const desk = await openDesk();
    const { message_id } = await posted(desk);
    await until('it is rung for', () => [holder, connected].flatMap(rang).length > 0);
    await pause(1_000);
    expect([rang(holder).length, rang(connected).length]).toEqual([1, 0]);
    const sendExactly = (idempotency_key: string) => {
      const to = { project: 'shop', recipient: 's1', target_kind: 'session' };
      const [words, input] = typed('send', { ...to, sender: 'a', idempotency_key, payload: 'exactly' });
      return answer(home.env, home.project, words, input);
    };
    const sent = await sendExactly('k');
    expect(sent.native_delivery).toMatchObject({ status: 'native_accepted' });
    await pause(1_000);
    expect([rang(holder).length, rang(connected).length]).toEqual([1, 1]);
    const caller = { transport: 'cli', source_host: 'cli', session: 's1', principal: 'bob' } as const;
    const { messages } = ok(receive(desk, { project: 'shop' }, caller));
    expect(messages.map((message) => message.message_id)).toEqual([message_id, sent.message_id]);
    // A process without either stores, reads and acknowledges.
    const keys = messages.map(({ receipt }) => receipt);
    const answered = await acknowledge(desk, { project: 'shop', messages: keys }, caller);
    expect(ok(answered)).toMatchObject({ acknowledged: 2, refused: [] });
    // Where one process has both, an exact send is accepted the same way, and rung once.
    holder.kill();
    await until('the other has the lock', () => {
      const lock = locksIn(path.join(data(), 'runtime')).tryTake('notifier-s1');
      lock?.release();
      return lock === undefined;
    });
    expect((await sendExactly('k2')).native_delivery).toMatchObject({ status: 'native_accepted' });
    await pause(1_000);
    expect(rang(connected).length).toBe(2);
  });

  it('[INB-109] in a crash loop: each message is seen, and no acknowledged body is read again', async () => {
    const caller = { transport: 'cli', source_host: 'cli', session: 's1', principal: 'bob' } as const;
    const sent: string[] = [];
    const seen = new Set<string>();
    const acknowledged = new Set<string>();
    let rings = 0;
    const first = talking([entry, 'listener', record()]);
    await ready(first);
    const desk = await openDesk();
    first.kill();
    const readAll = async (): Promise<void> => {
      const { messages } = ok(receive(desk, { project: 'shop' }, caller));
      for (const { message_id } of messages) {
        expect(acknowledged.has(message_id)).toBe(false);
        seen.add(message_id);
      }
      const [done] = messages;
      if (done === undefined) return;
      ok(await acknowledge(desk, { project: 'shop', messages: [done.receipt] }, caller));
      acknowledged.add(done.message_id);
    };
    for (let round = 0; round < 8; round += 1) {
      const one = talking([entry, 'listener', record()]);
      if (round % 2 === 0) await ready(one);
      sent.push((await posted({ ...desk, wake: round % 3 === 0 ? noTouch : desk.wake })).message_id);
      await pause(60 * round);
      one.kill();
      const expired = desk.store.read((tx) => tx.notices.newest('s1'));
      if (expired !== undefined)
        await desk.store.write((tx) => tx.notices.setEnd(expired.notification_id, 0, Date.now() - 1));
      const rows = desk.store.read((tx) => tx.listener.rows(['s1'], 0, 100)).length;
      if (rows > rings) await readAll();
      rings = rows;
    }
    const last = talking([entry, 'listener', record()]);
    await until(
      'what waits is rung for',
      () => rang(last).length > 0 || acknowledged.size === sent.length,
      5_000,
    );
    while (acknowledged.size < sent.length) await readAll();
    expect([...seen].sort()).toEqual([...sent].sort());
    expect(ok(receive(desk, { project: 'shop' }, caller)).messages).toEqual([]);
    last.kill();
  });
});

describe.each(['channel', 'codex-queue', 'acp'])('a runner whose bell is %s', (kind) => {
  const start = () => {
    const child = spawn(process.execPath, [entry, kind, record(), 'attached'], {
      env: home.env,
      cwd: home.project,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    home.atEnd(() => void child.kill('SIGKILL'));
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { child, said: () => said, exited };
  };
  const generations = async (): Promise<number[]> =>
    (await liveCards(home, 'shop', 1)).map(({ generation }) => generation as number);

  it('[HOST-031] C11: stops with its line and exit 0 when it is replaced, and registers again when its lease ran out', async () => {
    home.start(['router']);
    await until('a router runs', () => existsSync(path.join(data(), 'router-v1.sock')));
    const first = start();
    expect(await generations()).toEqual([1]);
    const second = start();
    expect(await first.exited).toBe(0);
    expect(first.said()).toBe('replaced by a newer connection for this session; stopping.\n');
    expect(await generations()).toEqual([2]);
    second.child.kill('SIGSTOP');
    await liveCards(home, 'shop', 0);
    second.child.kill('SIGCONT');
    await until('it is back', async () => (await generations())[0] === 3, 10_000);
    expect(second.child.exitCode).toBeNull();
    const { stdout } = await postbell(home.env, home.project, sendTo('s1'), 'x');
    expect(JSON.parse(stdout).native_delivery).toMatchObject({ status: 'native_accepted' });
  });

  const sendTo = (session: string): string[] => [
    'message',
    'send',
    '--project',
    'shop',
    '--sender',
    'a',
    '--recipient',
    session,
    '--target-kind',
    'session',
    '--idempotency-key',
    'k',
    '--payload-stdin',
  ];
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
