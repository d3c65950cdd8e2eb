// The relay as an operator runs it: the bundled program, killed and started again.

import { linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Ask, alice, askAt, itemAt, queueAt } from '../relay/scene.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { postbell } from './postbell.ts';

let home: Home;
const asking: Ask[] = [];
beforeEach(() => {
  home = makeHome();
});
afterEach(async () => {
  for (const ask of asking.splice(0)) ask.end();
  await home.end();
});

interface Running extends Ask {
  process: Started;
  told: { origin: string; store: string; protocols: string[]; version: string };
}

async function startRelay(words: string[] = ['--listen', '127.0.0.1:0'], env = {}): Promise<Running> {
  const process = home.start(['relay', ...words], env);
  let ended = false;
  void process.exited.then(() => {
    ended = true;
  });
  await until('the relay says where it is', () => ended || process.stdout().endsWith('\n'));
  if (ended) throw new Error(process.stderr());
  const told = JSON.parse(process.stdout()) as Running['told'];
  const ask = askAt(Number(new URL(told.origin).port));
  asking.push(ask);
  return { process, told, ...ask };
}

const queue = queueAt(alice);
const register = (relay: Ask) => relay.ask({ method: 'PUT', path: `/v1/queues/${queue}`, by: alice });
const post = (relay: Ask, nth: number) =>
  relay.ask({
    method: 'POST',
    path: `/v1/queues/${queue}/items`,
    body: `item ${nth}`,
    headers: { 'content-type': 'application/octet-stream', 'postbell-item': itemAt(nth) },
  });
const poll = (relay: Ask, query = '?wait_ms=0&max=64') =>
  relay.ask({ method: 'GET', path: `/v1/queues/${queue}/items`, query, by: alice });
const settle = (relay: Ask, ack: string[]) =>
  relay.ask({
    method: 'POST',
    path: `/v1/queues/${queue}/settle`,
    body: JSON.stringify({ ack }),
    headers: { 'content-type': 'application/json' },
    by: alice,
  });

/** Everything that the queue holds, taken out. */
async function drain(relay: Ask): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const items = (await poll(relay)).json.items as { token: string; item: string }[];
    if (items.length === 0) return ids;
    ids.push(...items.map(({ item }) => item));
    await settle(
      relay,
      items.map(({ token }) => token),
    );
  }
}

describe('starting', () => {
  it('needs no option, and says where it is [REL-001]', async () => {
    const relay = await startRelay([]).catch((error: Error) => error);
    if (relay instanceof Error) {
      // The usual port is another's on this machine.
      expect(relay.message).toContain('127.0.0.1:7420');
      throw relay;
    }
    expect(relay.told).toEqual({
      origin: 'http://127.0.0.1:7420',
      store: `sqlite:${path.join(home.dir, 'data', 'relay.db')}`,
      protocols: ['postbell-1'],
      version: expect.stringMatching(/^\d+\./),
    });
    expect(relay.process.stdout().trimEnd()).not.toContain('\n');
    expect((await register(relay)).json).toEqual({ created: true });
    expect((await post(relay, 1)).status).toBe(202);
    expect(await drain(relay)).toEqual([itemAt(1)]);
    expect(statSync(path.join(home.dir, 'data', 'relay.db')).mode & 0o777).toBe(0o600);
  });

  it('has a store for itself, by whatever name [REL-003]', async () => {
    await startRelay();
    const directory = path.join(home.dir, 'data');
    const elsewhere = path.join(home.dir, 'elsewhere');
    mkdirSync(elsewhere);
    symlinkSync(path.join(directory, 'relay.db'), path.join(elsewhere, 'linked.db'));
    symlinkSync(directory, path.join(home.dir, 'door'));
    const names = [
      path.join(directory, 'relay.db'),
      path.join(elsewhere, 'linked.db'),
      path.join(home.dir, 'door', 'relay.db'),
    ];
    for (const name of names) {
      const words = ['relay', '--listen', '127.0.0.1:0', '--store', `sqlite:${name}`];
      const { code, stdout, stderr } = await postbell(home.env, home.project, words);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('another relay has the store');
      expect(stderr.trimEnd()).not.toContain('\n');
    }
  });

  it('does not take a store that has a second name', async () => {
    const { process } = await startRelay();
    process.child.kill('SIGTERM');
    await process.exited;
    const file = path.join(home.dir, 'data', 'relay.db');
    linkSync(file, path.join(home.dir, 'second.db'));
    const { code, stderr } = await postbell(home.env, home.project, ['relay', '--listen', '127.0.0.1:0']);
    expect(code).toBe(1);
    expect(stderr).toContain(file);
  });

  it('neither serves nor replaces a store that is damaged [REL-052]', async () => {
    const relay = await startRelay();
    await register(relay);
    for (let nth = 1; nth <= 40; nth += 1) await post(relay, nth);
    relay.process.child.kill('SIGTERM');
    expect(await relay.process.exited).toEqual({ code: 0, signal: null });
    const file = path.join(home.dir, 'data', 'relay.db');
    const whole = readFileSync(file);
    const scratched = Buffer.from(whole);
    scratched.fill(0x5a, 4_096 + 100, whole.length - 4_096);
    const damages = [
      scratched,
      Buffer.from('no store at all '.repeat(512)),
      whole.subarray(0, whole.length / 2),
    ];
    for (const damaged of damages) {
      writeFileSync(file, damaged);
      const { code, stdout, stderr } = await postbell(home.env, home.project, [
        'relay',
        '--listen',
        '127.0.0.1:0',
      ]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(file);
      expect(readFileSync(file).equals(damaged)).toBe(true);
    }
    writeFileSync(file, whole);
    expect(await drain(await startRelay())).toHaveLength(40);
  });

  it.each([
    [['--lisen', 'x'], 'lisen'],
    [['--listen'], 'listen'],
    [['--listen', '7420'], '--listen'],
    [['--listen', '127.0.0.1:70000'], '--listen'],
    [['--public-url', 'relay.example'], '--public-url'],
    [['--public-url', 'https://relay.example/path'], '--public-url'],
    [['--store', 'relay.db'], '--store'],
    [['--store', 'nats://x'], '--store'],
    [['--insecure-http=yes'], 'insecure-http'],
    [['--tls-cert', 'x'], 'tls-cert'],
    [['start'], 'start'],
  ])('names a wrong option: %j', async (words, named) => {
    const { code, stdout, stderr } = await postbell(home.env, home.project, ['relay', ...words]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(named);
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  it('takes options from the environment, and names wrong ones there', async () => {
    const store = path.join(home.dir, 'mine.db');
    const env = {
      POSTBELL_RELAY_LISTEN: '127.0.0.1:0',
      POSTBELL_RELAY_STORE: `sqlite:${store}`,
      POSTBELL_RELAY_PUBLIC_URL: '',
      POSTBELL_RELAYS: 'http://127.0.0.1:1',
    };
    expect((await startRelay([], env)).told.store).toBe(`sqlite:${store}`);
    for (const [name, value] of [
      ['POSTBELL_RELAY_LISTEN', 'here'],
      ['POSTBELL_RELAY_LISTENS', '127.0.0.1:0'],
      ['POSTBELL_RELAY_INSECURE_HTTP', 'maybe'],
    ] as const) {
      const { code, stderr } = await postbell({ ...home.env, [name]: value }, home.project, ['relay']);
      expect(code).toBe(1);
      expect(stderr).toMatch(/--listen|POSTBELL_RELAY_LISTENS|--insecure-http/);
    }
  });

  it('is open to other machines only when it is told so', async () => {
    const { code, stderr } = await postbell(home.env, home.project, ['relay', '--listen', '192.0.2.1:0']);
    expect(code).toBe(1);
    expect(stderr).toContain('--insecure-http');
  });
});

describe('ending', () => {
  it('keeps what it acknowledged, killed right after the answer [REL-009]', async () => {
    let relay = await startRelay();
    await register(relay);
    for (let round = 1; round <= 5; round += 1) {
      const { status } = await post(relay, round);
      relay.process.child.kill('SIGKILL');
      expect(status).toBe(202);
      await relay.process.exited;
      relay = await startRelay();
    }
    expect(await drain(relay)).toEqual([1, 2, 3, 4, 5].map(itemAt));
  });

  it('keeps all but leases over a kill: what was not settled comes again [REL-050]', async () => {
    const relay = await startRelay();
    await register(relay);
    const card = `/v1/queues/${queue}/card`;
    const headers = { 'content-type': 'application/octet-stream' };
    await relay.ask({ method: 'PUT', path: card, body: new Uint8Array([1, 2, 3]), headers, by: alice });
    await post(relay, 1);
    await post(relay, 2);
    const drainedAt = performance.now();
    const items = (await poll(relay)).json.items as { token: string }[];
    relay.process.child.kill('SIGKILL');
    await relay.process.exited;
    const again = await startRelay();
    const { json } = await again.ask({ method: 'GET', path: card });
    expect(json).toEqual({ age_ms: expect.any(Number), gone: false, card: 'AQID' });
    // Since the drain, and neither since the restart nor since the 90 s that a lost time would count as.
    expect(json.age_ms).toBeGreaterThan(performance.now() - drainedAt - 100);
    expect(json.age_ms).toBeLessThan(60_000);
    expect((await settle(again, [items[0]?.token as string])).json).toEqual({ settled: 1, unknown: 0 });
    expect(await drain(again)).toEqual([itemAt(2)]);
  });

  it('by a signal answers what waits, finishes what is posted, and takes no more [REL-004]', async () => {
    const relay = await startRelay();
    await register(relay);
    const stored: string[] = [];
    let refused = 0;
    let nth = 0;
    const lane = async (): Promise<void> => {
      while (refused < 8) {
        nth += 1;
        const own = nth;
        const { status } = await post(relay, own).catch(() => ({ status: 0 }));
        if (status === 202) stored.push(itemAt(own));
        else refused += 1;
      }
    };
    // On another queue, so that nothing wakes it but the end.
    const second = queueAt(alice, 2);
    await relay.ask({ method: 'PUT', path: `/v1/queues/${second}`, by: alice });
    const waiting = relay.ask({
      method: 'GET',
      path: `/v1/queues/${second}/items`,
      query: '?wait_ms=55000',
      by: alice,
    });
    await pause(100);
    const lanes = Array.from({ length: 8 }, lane);
    await pause(150);
    const begun = performance.now();
    relay.process.child.kill('SIGTERM');
    expect((await waiting).json).toEqual({ items: [], more: false });
    expect(await relay.process.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - begun).toBeLessThan(10_000);
    await Promise.all(lanes);
    expect(stored.length).toBeGreaterThan(8);
    const found = new Set(await drain(await startRelay()));
    expect(stored.filter((id) => !found.has(id))).toEqual([]);
  });

  it('loses nothing that it acknowledged, and gives nothing that was settled, killed again and again [REL-049]', async () => {
    let relay = await startRelay();
    await register(relay);
    const accepted = new Set<string>();
    const asked = new Set<string>();
    const settled = new Set<string>();
    let nth = 0;
    for (let round = 0; round < 12; round += 1) {
      let over = false;
      const lane = async (): Promise<void> => {
        while (!over) {
          nth += 1;
          const own = nth;
          const answer = await post(relay, own).catch(() => undefined);
          if (answer?.status === 202) accepted.add(itemAt(own));
        }
      };
      const reader = async (): Promise<void> => {
        while (!over) {
          const answer = await poll(relay).catch(() => undefined);
          const items = (answer?.json.items ?? []) as { token: string; item: string }[];
          const half = items.slice(0, items.length / 2);
          // One whose answer did not come may be settled, or not.
          for (const { item } of half) asked.add(item);
          const tokens = half.map(({ token }) => token);
          const answered = await settle(relay, tokens).catch(() => undefined);
          if (answered?.status === 200) for (const { item } of half) settled.add(item);
        }
      };
      const work = [...Array.from({ length: 8 }, () => lane()), reader()];
      await pause(40 + 7 * round);
      relay.process.child.kill('SIGKILL');
      await relay.process.exited;
      over = true;
      await Promise.all(work);
      relay = await startRelay();
    }
    const found = await drain(relay);
    expect(new Set(found).size).toBe(found.length);
    expect([...accepted].filter((id) => !asked.has(id) && !found.includes(id))).toEqual([]);
    expect(found.filter((id) => settled.has(id))).toEqual([]);
    expect(settled.size).toBeGreaterThan(20);
    expect(accepted.size - settled.size).toBeGreaterThan(20);
  });

  it('says nothing of keys, bodies or whole names of queues', async () => {
    const relay = await startRelay();
    await register(relay);
    await post(relay, 1);
    await drain(relay);
    relay.process.child.kill('SIGTERM');
    await relay.process.exited;
    const said = relay.process.stdout() + relay.process.stderr();
    for (const secret of [alice.key, queue, 'item 1', itemAt(1)]) expect(said).not.toContain(secret);
  });
});
