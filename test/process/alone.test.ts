// Mail that needs nothing but the store: no router, no session, no network.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, postbell } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const send = (project: string, recipient: string, more: string[] = []) => [
  'message',
  'send',
  '--project',
  project,
  '--sender',
  'alice',
  '--recipient',
  recipient,
  '--idempotency-key',
  `${project} ${recipient} ${more.join(' ')}`,
  '--payload-stdin',
  ...more,
];
const toSession = (more: string[] = []) =>
  send('shop', 's1', ['--target-kind', 'session', '--json', ...more]);
const data = () => home.env.POSTBELL_HOME as string;
const socketPath = () => path.join(data(), 'router-v1.sock');
const codeOf = (stderr: string): string => JSON.parse(stderr).error.code;

async function listening(take: (socket: Socket) => void): Promise<{ close(): Promise<void> }> {
  const taken: Socket[] = [];
  const server = createServer((socket) => {
    taken.push(socket);
    take(socket);
  });
  await new Promise<void>((resolve) => server.listen(socketPath(), resolve));
  chmodSync(socketPath(), 0o600);
  return {
    close: async () => {
      for (const socket of taken) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('a fresh home', () => {
  it('[SES-032] serves any scope that is named, without any registration', async () => {
    expect(
      (await answer(home.env, home.project, ['message', 'poll', '--project', 'shop', '--recipient', 'bob']))
        .events,
    ).toEqual([]);
    const { message_id } = await answer(home.env, home.project, send('shop', 'bob'), 'hello');
    const scope = ['--project', 'shop', '--recipient', 'bob'];
    expect((await answer(home.env, home.project, ['message', 'poll', ...scope])).events).toMatchObject([
      { message_id },
    ]);
    const fetched = await answer(home.env, home.project, [
      'message',
      'fetch',
      ...scope,
      '--message-id',
      message_id as string,
    ]);
    expect(fetched.payload).toBe('hello');
    expect((await answer(home.env, home.project, ['inbox', 'receive', ...scope])).messages).toMatchObject([
      { payload: 'hello' },
    ]);
    expect(readdirSync(data()).filter((name) => /router|sock/.test(name))).toEqual([]);
  });

  it('[SES-017] keeps a plain project name and the automatic one apart', async () => {
    const automatic = (
      await answer(home.env, home.project, ['send', 'bob', '--json'], 'to the automatic one')
    ).project as string;
    expect(automatic).toMatch(/^shop~[0-9a-f]{32}$/);
    await answer(home.env, home.project, send('shop', 'bob'), 'to the plain one');
    for (const [project, payload] of [
      ['shop', 'to the plain one'],
      [automatic, 'to the automatic one'],
    ] as const) {
      const inbox = ['inbox', 'receive', '--project', project, '--recipient', 'bob'];
      expect((await answer(home.env, home.project, inbox)).messages).toMatchObject([{ payload }]);
    }
  });

  it('[MSG-066] knows the clones of one remote by one project, in two homes', async () => {
    const other = makeHome();
    try {
      const ids = [];
      for (const [at, name, url] of [
        [home, 'shop', 'https://git.example/x/shop.git'],
        [other, 'checkout-of-bob', 'https://bob@git.example/x/shop'],
      ] as const) {
        const clone = path.join(at.dir, 'clones', name);
        mkdirSync(clone, { recursive: true });
        const git = (...words: string[]) => execFileSync('git', words, { cwd: clone, env: at.env });
        git('init', '--quiet');
        git('remote', 'add', 'origin', url);
        ids.push((await answer(at.env, clone, ['send', 'bob', '--json'], 'x')).project);
      }
      expect(ids[0]).toMatch(/^shop~[0-9a-f]{32}$/);
      expect(ids[1]).toBe(ids[0]);
    } finally {
      await other.end();
    }
  });
});

describe('a store that cannot be opened', () => {
  it('[SES-005] is an error, and no other is used in its place', async () => {
    mkdirSync(data(), { mode: 0o700 });
    const database = path.join(home.dir, 'elsewhere', 'mail.db');
    mkdirSync(path.dirname(database), { mode: 0o700 });
    writeFileSync(database, 'this is no database, whatever its name says'.repeat(200), { mode: 0o600 });
    const env = { ...home.env, POSTBELL_DB: database };
    for (const words of [
      send('shop', 'bob'),
      ['inbox', 'receive', '--recipient', 'bob'],
      ['message', 'poll', '--project', 'p', '--recipient', 'b'],
    ]) {
      const { code, stderr } = await postbell(env, home.project, words, 'x');
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^postbell: store_unreadable: /)]);
    }
    const made = readdirSync(home.dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.db'),
    );
    expect(made).toEqual(['elsewhere/mail.db']);
    expect(readFileSync(database, 'utf8')).toContain('this is no database');
  });

  it('[SES-005] for want of permission is an error too, and stays as it was', async () => {
    await answer(home.env, home.project, send('shop', 'bob'), 'x');
    const database = path.join(data(), 'postbell.db');
    chmodSync(database, 0o000);
    const { code, stderr } = await postbell(
      home.env,
      home.project,
      send('shop', 'bob', ['--task-id', 't']),
      'x',
      true,
    );
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^postbell: store_un(?:readable|writable): /)]);
    expect(
      readdirSync(home.dir, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.db')),
    ).toEqual(['data/postbell.db']);
  });
});

describe('a send without a router that answers', () => {
  it('[MSG-029] to a principal succeeds: with none at once, with one that hangs within two seconds', async () => {
    const none = await answer(home.env, home.project, send('shop', 'bob'), 'x');
    expect(none).toMatchObject({ delivery_state: 'receiver_stored', recipient_presence: 'not_checked' });
    writeFileSync(path.join(data(), 'router.token'), 'x\n', { mode: 0o600 });
    const heard: string[] = [];
    const silent = await listening((socket) => socket.on('data', (chunk) => heard.push(String(chunk))));
    const began = Date.now();
    const sent = await answer(home.env, home.project, send('shop', 'carol'), 'x');
    expect(Date.now() - began).toBeLessThan(3_500);
    expect(sent).toMatchObject({ delivery_state: 'receiver_stored', recipient_presence: 'not_checked' });
    expect(JSON.parse(heard[0] ?? '{}')).toMatchObject({ type: 'notify', delivery_id: sent.delivery_id });
    await silent.close();
  });

  it('[MSG-040] to an exact session is router_unreachable, never recipient_unavailable: no socket, refused, no permission', async () => {
    const none = await postbell(home.env, home.project, toSession(), 'x');
    expect([none.code, codeOf(none.stderr)]).toEqual([1, 'router_unreachable']);
    const router = home.start(['router']);
    await until(
      'it answers',
      async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
    );
    chmodSync(socketPath(), 0o000);
    const forbidden = await postbell(home.env, home.project, toSession(['--task-id', '2']), 'x', true);
    expect([forbidden.code, codeOf(forbidden.stderr)]).toEqual([1, 'router_unreachable']);
    router.child.kill('SIGKILL');
    await router.exited;
    chmodSync(socketPath(), 0o600);
    const refused = await postbell(home.env, home.project, toSession(['--task-id', '3']), 'x');
    expect([refused.code, codeOf(refused.stderr)]).toEqual([1, 'router_unreachable']);
    const kept = await answer(home.env, home.project, [
      'message',
      'poll',
      '--project',
      'shop',
      '--recipient',
      's1',
    ]);
    expect(kept.events).toHaveLength(3);
  });
});
