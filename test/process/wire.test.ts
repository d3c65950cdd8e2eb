// The router's socket under clients that do not behave, and hosts under a locked store.

import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import { Attachment } from '../../src/router/attachment.ts';
import { connectRouter } from '../../src/router/client.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, postbell } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
let router: Started;
let data: string;
beforeEach(async () => {
  home = makeHome();
  data = home.env.POSTBELL_HOME as string;
  router = home.start(['router']);
  await until(
    'it answers',
    async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
  );
});
afterEach(() => home.end());

const token = (): string => readFileSync(path.join(data, 'router.token'), 'utf8').trim();
const socketPath = (): string => path.join(data, 'router-v1.sock');
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath(), () => resolve(socket));
    socket.on('error', reject);
  });
}

const registration = (session_id: string, more = {}) => ({
  v: 1,
  type: 'register',
  request_id: session_id,
  hops: 0,
  auth_token: token(),
  project: 'p',
  principal_id: 'n'.repeat(200),
  session_id,
  adapter_kind: 'poll',
  bell: 'none',
  host_kind: 'other',
  postbell_version: '0.1.0',
  ...more,
});

describe('the router', () => {
  it('drops a client that asks and never reads, before it costs much', async () => {
    const socket = await open();
    socket.pause();
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    socket.on('error', () => socket.destroy());
    const many = Buffer.from('x\n'.repeat(1_000_000));
    socket.write(many);
    socket.write(many);
    await Promise.race([closed, pause(5_000)]);
    socket.destroy();
    expect((await answer(home.env, home.project, ['router', 'status'])).pid).toBe(router.pid);
    const rss =
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${router.pid}/status`, 'utf8'))?.[1]) / 1_024;
    expect(rss).toBeLessThan(400);
  });

  it('leaves no session behind where one socket registers two at once', async () => {
    const socket = await open();
    socket.write(['a', 'b'].map((id) => `${JSON.stringify(registration(id))}\n`).join(''));
    await liveCards(home, 'p', 1);
    socket.destroy();
    await liveCards(home, 'p', 0);
  });

  it('[HOST-011] registers no session with a bell that it does not know', async () => {
    const socket = await open();
    let said = '';
    socket.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    socket.write(`${JSON.stringify(registration('a', { bell: 'gong' }))}\n`);
    await until('it answers', () => said.endsWith('\n'));
    expect(JSON.parse(said)).toMatchObject({ ok: false, error: { code: 'invalid_field' } });
    socket.write(`${JSON.stringify(registration('b'))}\n`);
    const cards = await liveCards(home, 'p', 1);
    expect(cards).toMatchObject([{ session_id: 'b' }]);
    socket.destroy();
  });

  it('tells of a hundred sessions with the longest names', async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open()));
    for (const [index, socket] of sockets.entries())
      socket.write(
        `${JSON.stringify(registration(`${'s'.repeat(120)}${index}`, { work_summary: 'w'.repeat(200) }))}\n`,
      );
    await until('all are there', async () => {
      const words = ['message', 'discover', '--project', 'p', '--limit', '100'];
      return ((await answer(home.env, home.project, words)).cards as object[]).length === 100;
    });
    for (const socket of sockets) socket.destroy();
  });

  it('repeats the touch of a writer that died, also where another touch came just before', async () => {
    const wake = fileWake(path.join(data, 'runtime', 'mail'));
    await pause(2_200);
    wake.touch();
    await pause(60);
    let touched = 0;
    const unwatch = wake.watch(() => {
      touched += 1;
    });
    const writer = new BetterSqlite3(path.join(data, 'postbell.db'));
    writer.prepare("INSERT INTO alias VALUES ('new', 'old')").run();
    writer.close();
    await until('it is touched for', () => touched > 0, 2_500);
    unwatch();
  });

  it('[MSG-006] answers heartbeats at once while the store is locked, and a sender is told store_busy after 5 s', async () => {
    const client = await connectRouter(socketPath(), { clock: systemClock });
    const ask = async (frame: { type: string; [field: string]: unknown }) => {
      const began = Date.now();
      const answer = await client.request(frame, 4_000);
      return { answer, tookMs: Date.now() - began };
    };
    const { v: _, request_id: __, hops: ___, ...frame } = registration('s1', { lease_ms: 3_000 });
    const { connection_id, generation } = (await ask(frame)).answer;
    const heartbeat = { type: 'heartbeat', project: 'p', session_id: 's1', connection_id, generation };
    const holder = new BetterSqlite3(path.join(data, 'postbell.db'));
    holder.exec('BEGIN IMMEDIATE');
    const began = Date.now();
    const send = ['message', 'send', '--project', 'p', '--sender', 'a', '--recipient', 'b'];
    const words = [...send, '--idempotency-key', 'k', '--payload-stdin'];
    const sending = postbell(home.env, home.project, words, 'x').then((done) => ({
      ...done,
      atMs: Date.now() - began,
    }));
    for (let beat = 0; beat < 4; beat += 1) {
      const { answer, tookMs } = await ask(heartbeat);
      expect(answer).toMatchObject({ generation, lease_ms: 3_000 });
      expect(tookMs).toBeLessThan(1_000);
      await pause(1_200);
    }
    const { code, stderr, atMs } = await sending;
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^postbell: store_busy: /)]);
    expect(atMs).toBeGreaterThan(4_900);
    expect(atMs).toBeLessThan(8_000);
    holder.exec('ROLLBACK');
    await pause(200);
    const lease = holder.prepare('SELECT lease_expires_at_ms, disconnected_at FROM connection').get();
    expect(lease).toMatchObject({ disconnected_at: null });
    expect((lease as { lease_expires_at_ms: number }).lease_expires_at_ms).toBeGreaterThan(began + 3_000);
    holder.close();
    client.close();
  });

  it('[MSG-006] and an MCP server alike: it reads on while one of its own sends waits for the lock', async () => {
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' }, ['--no-register']);
    const { data: first } = await session.call('receive_messages', { project: 'p', recipient: 'b' });
    const holder = new BetterSqlite3(path.join(data, 'postbell.db'));
    home.atEnd(() => holder.close());
    holder.exec('BEGIN IMMEDIATE');
    const began = Date.now();
    const letter = { project: 'p', sender: 'a', recipient: 'b', idempotency_key: 'k', payload: 'x' };
    let told: unknown;
    const sending = session.call('message', { action: 'send', ...letter }).then(({ data }) => {
      told = data.error;
    });
    for (let reads = 0; reads < 4; reads += 1) {
      const asked = Date.now();
      expect((await session.call('receive_messages', { project: 'p', recipient: 'b' })).data).toEqual(first);
      expect([Date.now() - asked < 1_000, told]).toEqual([true, undefined]);
      await pause(1_000);
    }
    await sending;
    expect(told).toMatchObject({ code: 'store_busy', retryable: true });
    expect(Date.now() - began).toBeLessThan(8_000);
  });

  it('keeps a session whose heartbeat meets a locked store', async () => {
    const faults: unknown[] = [];
    const attachment = new Attachment({
      address: { socketPath: socketPath(), token },
      registration: {
        project: 'p',
        principal_id: 'alice',
        session_id: 's1',
        adapter_kind: 'poll',
        bell: 'none',
        host_kind: 'other',
        lease_ms: 9_000,
      },
      clock: systemClock,
      random: systemRandom,
      startRouter: () => {},
      endRouter: () => '',
      take: async () => undefined,
      onFault: (fault) => faults.push(fault),
    });
    await liveCards(home, 'p', 1);
    const holder = new BetterSqlite3(path.join(data, 'postbell.db'));
    await pause(4_000);
    holder.exec('BEGIN IMMEDIATE');
    await pause(3_500);
    holder.exec('ROLLBACK');
    holder.close();
    await pause(2_500);
    expect(await liveCards(home, 'p', 1)).toMatchObject([{ session_id: 's1', generation: 1 }]);
    expect(faults).toEqual([]);
    await attachment.close();
  });
});
