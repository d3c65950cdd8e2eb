// The router as a process: one an account, owner-private, gone without a trace that could mislead.

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, postbell, root } from './postbell.ts';

let home: Home;
let data: string;
let socket: string;

beforeEach(() => {
  home = makeHome();
  data = home.env.POSTBELL_HOME as string;
  socket = path.join(data, 'router-v1.sock');
});
afterEach(() => home.end());

async function running(more = {}): Promise<Started> {
  const started = home.start(['router'], more);
  await until(
    'the router answers',
    async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
  );
  return started;
}

const mode = (file: string): number => statSync(file).mode & 0o777;
const failed = (code: string) => ({
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^postbell: ${code}: [^\n]*\n$`)),
});

/** Speaks to the socket in raw lines. */
function raw(): Promise<{
  ask(line: string): Promise<Record<string, unknown>>;
  closed: Promise<void>;
  end(): void;
}> {
  return new Promise((resolve, reject) => {
    const client = connect(socket);
    let text = '';
    let take: (line: string) => void = () => {};
    client.on('error', reject);
    client.on('data', (chunk) => {
      text += String(chunk);
      const end = text.indexOf('\n');
      if (end < 0) return;
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      take(line);
    });
    const closed = new Promise<void>((done) => client.on('close', () => done()));
    client.on('connect', () =>
      resolve({
        ask: (line) =>
          new Promise((answered) => {
            take = (answerLine) => answered(JSON.parse(answerLine) as Record<string, unknown>);
            client.write(`${line}\n`);
          }),
        closed,
        end: () => client.destroy(),
      }),
    );
  });
}

describe('postbell router', () => {
  it('[SES-063] makes the owner-private token and socket beside the database, and keeps nothing readable for others', async () => {
    const router = await running();
    expect(await answer(home.env, home.project, ['router', 'status'])).toMatchObject({
      socket,
      pid: router.pid,
    });
    expect([mode(data), mode(path.join(data, 'runtime'))]).toEqual([0o700, 0o700]);
    for (const name of ['router-v1.sock', 'router.token', 'router-v1.lock', 'postbell.db', 'postbell.db-wal'])
      expect([name, mode(path.join(data, name))]).toEqual([name, 0o600]);
    expect(readFileSync(path.join(data, 'router.token'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
  });

  it('[SES-064] ends at SIGINT and SIGTERM with 0 and removes its own socket, never its lock', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const router = await running();
      router.child.kill(signal);
      expect(await router.exited).toEqual({ code: 0, signal: null });
      expect(existsSync(socket)).toBe(false);
      expect(existsSync(path.join(data, 'router-v1.lock'))).toBe(true);
    }
    const router = await running();
    unlinkSync(socket);
    writeFileSync(socket, 'somebody else', { mode: 0o600 });
    router.child.kill('SIGTERM');
    await router.exited;
    expect(readFileSync(socket, 'utf8')).toBe('somebody else');
  });

  it.each(['removed', 'replaced', 'emptied'])(
    'has its token again within seconds where that was %s',
    async (what) => {
      const router = await running();
      const file = path.join(data, 'router.token');
      const token = readFileSync(file, 'utf8');
      if (what === 'removed') unlinkSync(file);
      if (what === 'replaced') writeFileSync(file, `${'0'.repeat(64)}\n`);
      if (what === 'emptied') writeFileSync(file, '');
      expect((await postbell(home.env, home.project, ['router', 'status'])).code).toBe(1);
      await until(
        'it answers again',
        async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
      );
      expect([readFileSync(file, 'utf8'), mode(file)]).toEqual([token, 0o600]);
      expect(router.child.exitCode).toBeNull();
    },
  );

  it('leaves a token that was opened to others to its owner, and says so once', async () => {
    const router = await running();
    const file = path.join(data, 'router.token');
    chmodSync(file, 0o644);
    await until('it is said', () => router.stderr().includes('insecure_path'));
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    expect(router.stderr().match(/insecure_path/g)).toHaveLength(1);
    expect(mode(file)).toBe(0o644);
    expect(await postbell(home.env, home.project, ['router', 'status'])).toEqual(failed('insecure_path'));
  });

  it('[SES-068] refuses a socket path over 103 bytes before it makes anything; mail goes on', async () => {
    const at = (bytes: number): string => `/${'é'.repeat(20)}${'x'.repeat(bytes - 41)}`;
    const long = { ...home.env, POSTBELL_ROUTER_SOCKET: at(104) };
    const refused = await postbell(long, home.project, ['router']);
    expect(refused).toEqual(failed('socket_path_too_long'));
    expect(existsSync(data)).toBe(false);
    expect(refused.stderr).toContain(`${at(104)} has 104 bytes`);
    expect(refused.stderr).toContain('POSTBELL_ROUTER_SOCKET');
    expect(
      (await answer(long, home.project, ['send', 'alice', '--json'], 'still sent')).recipient_presence,
    ).toBe('not_checked');
    expect(
      await postbell({ ...home.env, POSTBELL_ROUTER_SOCKET: 'relative.sock' }, home.project, ['router']),
    ).toEqual(failed('invalid_socket_path'));
    const deep = path.join(home.dir, 'x'.repeat(90));
    const derived = await postbell({ ...home.env, POSTBELL_HOME: deep }, home.project, ['router']);
    expect(derived).toEqual(failed('socket_path_too_long'));
    expect(existsSync(deep)).toBe(false);
    const padding = 103 - Buffer.byteLength(path.join(home.dir, 'é.sock'));
    const fits = path.join(home.dir, `é${'x'.repeat(padding)}.sock`);
    expect(Buffer.byteLength(fits)).toBe(103);
    const router = home.start(['router'], { POSTBELL_ROUTER_SOCKET: fits });
    await until('it listens', () => existsSync(fits));
    router.child.kill('SIGTERM');
    expect((await router.exited).code).toBe(0);
  });

  it('[SES-073] refuses a directory that others can write, and one of another account', async () => {
    const open = path.join(home.dir, 'open');
    mkdirSync(open);
    const env = { ...home.env, POSTBELL_ROUTER_SOCKET: path.join(open, 'r.sock') };
    for (const bits of [0o775, 0o757]) {
      chmodSync(open, bits);
      expect(await postbell(env, home.project, ['router'])).toEqual(failed('insecure_path'));
    }
    chmodSync(open, 0o755);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(open, 65_534, 65_534);
    const others = isRoot ? open : '/usr';
    const theirs = { ...home.env, POSTBELL_ROUTER_SOCKET: path.join(others, 'r.sock') };
    expect(await postbell(theirs, home.project, ['router'])).toEqual(failed('insecure_path'));
    chmodSync(data, 0o770);
    expect(await postbell(home.env, home.project, ['router'])).toEqual(failed('insecure_path'));
    chmodSync(data, 0o700);
  });

  it('[SES-072] closes on a wrong token, makes the right one once and never prints it, and refuses a readable file', async () => {
    const router = await running();
    const client = await raw();
    const frame = { v: 1, type: 'discover', request_id: 'r1', hops: 0, auth_token: 'wrong', project: 'p' };
    expect(await client.ask(JSON.stringify(frame))).toMatchObject({
      ok: false,
      request_id: 'r1',
      error: { code: 'authentication_failed' },
    });
    await client.closed;
    const token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    const comparing = readFileSync(path.join(root, 'src/router/handlers.ts'), 'utf8');
    expect(comparing).toMatch(/equalSecrets\(fields\.auth_token, token\)/);
    expect(comparing).not.toMatch(/auth_token [!=]==/);
    const another = makeHome();
    const elsewhere = another.start(['router']);
    const tokenFile = path.join(another.env.POSTBELL_HOME as string, 'router.token');
    await until('another home has one', () => existsSync(tokenFile));
    expect(readFileSync(tokenFile, 'utf8').trim()).not.toBe(token);
    elsewhere.child.kill('SIGTERM');
    await elsewhere.exited;
    await another.end();
    const status = await postbell(home.env, home.project, ['router', 'status']);
    expect(status.stdout + status.stderr + router.stderr() + router.stdout()).not.toContain(token);
    router.child.kill('SIGTERM');
    await router.exited;
    await running();
    expect(readFileSync(path.join(data, 'router.token'), 'utf8').trim()).toBe(token);
    chmodSync(path.join(data, 'router.token'), 0o644);
    expect(await postbell(home.env, home.project, ['message', 'discover', '--project', 'p'])).toEqual(
      failed('insecure_path'),
    );
    chmodSync(path.join(data, 'router.token'), 0o600);
  });

  it('[SES-067] is not called stopped where that cannot be known', async () => {
    const router = await running();
    for (const wrong of ['', '45871', 'rel.sock'])
      expect(
        await postbell({ ...home.env, POSTBELL_ROUTER_SOCKET: wrong }, home.project, ['router', 'stop']),
      ).toEqual(failed('invalid_socket_path'));
    process.kill(router.pid, 'SIGSTOP');
    home.atEnd(() => router.child.kill('SIGCONT'));
    expect(await postbell(home.env, home.project, ['router', 'stop'])).toEqual(failed('router_timeout'));
    // Its queue of connections is full: not even a probe gets through.
    const waiting = Array.from({ length: 600 }, () => connect(socket).on('error', () => {}));
    home.atEnd(() => waiting.forEach((one) => void one.destroy()));
    await expect
      .poll(async () => (await postbell(home.env, home.project, ['router', 'stop'])).stderr)
      .toMatch(/^postbell: router_timeout: whether a router runs at .* cannot be told/);
    for (const one of waiting) one.destroy();
    router.child.kill('SIGCONT');
    expect((await postbell(home.env, home.project, ['router', 'stop'])).code).toBe(0);
  });

  it('[SES-072] makes a new token where a file holds none', async () => {
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(path.join(data, 'router.token'), '\n', { mode: 0o600 });
    await running();
    expect(readFileSync(path.join(data, 'router.token'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect((await postbell(home.env, home.project, ['router', 'status'])).code).toBe(0);
  });

  it('[SES-086] answers each defective frame with its code, and goes on', async () => {
    await running();
    const auth_token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
    const good = { v: 1, type: 'discover', request_id: 'r1', hops: 0, auth_token, project: 'p' };
    const client = await raw();
    const code = async (frame: object | string) => {
      const { error } = await client.ask(typeof frame === 'string' ? frame : JSON.stringify(frame));
      return (error as { code: string } | undefined)?.code;
    };
    expect(await code('not json')).toBe('invalid_json');
    expect(await code('[]')).toBe('invalid_json');
    expect(await code({ ...good, v: 2 })).toBe('unsupported_version');
    expect(await code({ ...good, type: 'deliver' })).toBe('unsupported_type');
    expect(await code({ ...good, payload: 'x' })).toBe('unexpected_field');
    expect(await code({ ...good, hops: 5 })).toBe('hop_limit');
    expect(await code({ ...good, project: 7 })).toBe('invalid_field');
    expect(await code({ v: 1, type: 'discover', hops: 0 })).toBe('invalid_frame');
    expect(await client.ask(JSON.stringify(good))).toMatchObject({ ok: true, request_id: 'r1', cards: [] });
    client.end();
  });
});
