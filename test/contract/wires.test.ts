// The router's wire at its limits, and a client before a router that does not answer as it should.

import { spawn } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { routerAddress } from '../../src/compose/local.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { connectRouter } from '../../src/router/client.ts';
import {
  atEnd,
  letter,
  openScene,
  post,
  refused,
  registration,
  type Scene,
  temporaryDirectory,
} from './desk.ts';
import { arrived, openFakeRouter, openRouter, pass, type Words } from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

interface Raw {
  socket: Socket;
  answers: Words[];
  closed: boolean;
  /** Writes a line, and resolves with the code of its answer, or `ok`. */
  say(line: string): Promise<string>;
}

async function raw(socketPath: string): Promise<Raw> {
  const socket = connect(socketPath);
  const found: Raw = { socket, answers: [], closed: false, say: async () => '' };
  let text = '';
  socket.on('error', () => {});
  socket.on('close', () => {
    found.closed = true;
  });
  socket.on('data', (chunk) => {
    text += String(chunk);
    const lines = text.split('\n');
    text = lines.pop() as string;
    for (const line of lines) found.answers.push(JSON.parse(line) as Words);
  });
  await new Promise<void>((resolve) => socket.on('connect', resolve));
  atEnd(() => socket.destroy());
  found.say = async (line) => {
    const before = found.answers.length;
    socket.write(`${line}\n`);
    for (let turn = 0; turn < 20 && found.answers.length === before; turn += 1) await arrived();
    const answer = found.answers[before];
    return answer?.ok === true ? 'ok' : String((answer?.error as { code?: string } | undefined)?.code);
  };
  return found;
}

const common = { v: 1, request_id: 'r1', hops: 0 };
const discover = (over: Words = {}) =>
  JSON.stringify({ ...common, type: 'discover', auth_token: 'token', project: 'shop', ...over });

describe('[SES-085] a frame', () => {
  it('has at most 65,536 bytes, counted as UTF-8', async () => {
    const socket = await openRouter(desk);
    const client = await raw(socket);
    const wide = discover({ project: 'é'.repeat(100) });
    const padded = (bytes: number) => wide + ' '.repeat(bytes - Buffer.byteLength(wide));
    expect(padded(65_536).length).toBe(65_436);
    expect(await client.say(padded(65_536))).toBe('ok');
    expect(await client.say(padded(65_537))).toBe('frame_too_large');
    await arrived();
    expect(client.closed).toBe(true);
  });

  it('has made at most 4 hops', async () => {
    const client = await raw(await openRouter(desk));
    expect(await client.say(discover({ hops: 4 }))).toBe('ok');
    expect(await client.say(discover({ hops: 5 }))).toBe('hop_limit');
    expect(await client.say(discover())).toBe('ok');
  });

  it('to register, renew or discover is one of at most 120 in any 60 s of its connection', async () => {
    const socket = await openRouter(desk);
    const client = await raw(socket);
    const register = JSON.stringify({
      ...common,
      type: 'register',
      auth_token: 'token',
      ...registration('s1'),
      postbell_version: '0.1.0',
    });
    expect(await client.say(register)).toBe('ok');
    const { connection_id, generation } = client.answers[0] as { connection_id: string; generation: number };
    const key = { connection_id, generation };
    const heartbeat = JSON.stringify({
      ...common,
      type: 'heartbeat',
      project: 'shop',
      session_id: 's1',
      ...key,
    });
    for (let n = 0; n < 59; n += 1) expect(await client.say(heartbeat)).toBe('ok');
    await desk.clock.advance(30_000);
    for (let n = 0; n < 60; n += 1) expect(await client.say(discover())).toBe('ok');
    expect(await client.say(discover())).toBe('rate_limited');
    expect(await client.say(heartbeat)).toBe('rate_limited');
    // Notify and outcome frames are not counted, nor is another connection.
    const of = { attempt_id: 'a', delivery_id: 'd', ...key };
    for (let n = 0; n < 130; n += 1) {
      const notify = { type: 'notify', auth_token: 'token', project: 'shop', delivery_id: 'd' };
      expect(await client.say(JSON.stringify({ ...common, ...notify }))).toBe('ok');
      const outcome =
        n % 2 === 0
          ? { type: 'host_reject', failure_code: 'adapter_error' }
          : { type: 'host_accept', content: 'notice', receipt: {} };
      expect(await client.say(JSON.stringify({ ...common, ...outcome, ...of }))).toBe(
        'outcome_scope_mismatch',
      );
    }
    expect(await (await raw(socket)).say(discover())).toBe('ok');
    await desk.clock.advance(29_999);
    expect(await client.say(discover())).toBe('rate_limited');
    await desk.clock.advance(1);
    // The first 60 are a minute old; the other 60 are not.
    for (let n = 0; n < 60; n += 1) expect(await client.say(discover())).toBe('ok');
    expect(await client.say(discover())).toBe('rate_limited');
  });
});

describe('an answer', () => {
  const requests = async (answer: Parameters<typeof openFakeRouter>[1]) => {
    const fake = await openFakeRouter(desk, answer);
    const client = await connectRouter(fake.socketPath, desk);
    atEnd(() => client.close());
    const ask = () => client.request({ type: 'discover' }, 2_000).catch((error: Fault) => error.code);
    return { fake, ask };
  };
  const line = (answer: object) => `${JSON.stringify({ v: 1, hops: 0, ...answer })}\n`;

  it('[SES-087] repeats the request id and says ok, or an error with its code and message', async () => {
    const { ask, fake } = await requests(({ request_id }) => line({ request_id, ok: true, cards: [] }));
    expect(await ask()).toMatchObject({ ok: true, cards: [] });
    const error = { code: 'store_busy', message: 'locked' };
    fake.answer = ({ request_id }) => line({ request_id, ok: false, error });
    expect(await ask()).toBe('store_busy');
    // A router that could not read the id has no other.
    fake.answer = () => line({ request_id: '', ok: false, error: { code: 'invalid_json', message: '' } });
    expect(await ask()).toBe('invalid_json');
  });

  it('[SES-087] of the router is of that shape, and has an empty id where it could read none', async () => {
    const client = await raw(await openRouter(desk));
    await client.say(discover({ request_id: 'one' }));
    await client.say(discover({ request_id: 'two', hops: 5 }));
    await client.say('no frame');
    const error = (code: string) => ({ code, message: expect.any(String) });
    expect(client.answers).toEqual([
      { v: 1, hops: 0, request_id: 'one', ok: true, cards: [] },
      { v: 1, hops: 0, request_id: 'two', ok: false, error: error('hop_limit') },
      { v: 1, hops: 0, request_id: '', ok: false, error: error('invalid_json') },
    ]);
  });

  it.each([
    ['a foreign id', { request_id: 'x9', ok: true }],
    ['an id of a later request', { request_id: 'r99', ok: true }],
    ['an empty id', { request_id: '', ok: true }],
    ['no id', { ok: true }],
    ['neither success nor error', { request_id: 'r1' }],
    ['a code that there is not', { request_id: 'r1', ok: false, error: { code: 'made_up', message: '' } }],
  ])('[SES-087] with %s is invalid', async (_, answer) => {
    const { ask } = await requests(() => line(answer));
    expect(await ask()).toBe('invalid_response');
  });

  it('that comes too late is dropped, and the next one is read', async () => {
    let first = '';
    const { ask, fake } = await requests(({ request_id }) => {
      first = String(request_id);
      return undefined;
    });
    const asked = ask();
    await pass(desk.clock, 2_000);
    expect(await asked).toBe('router_timeout');
    fake.answer = ({ request_id }) =>
      line({ request_id: first, ok: true }) + line({ request_id, ok: true, cards: [1] });
    expect(await ask()).toMatchObject({ cards: [1] });
  });
});

describe('a socket', () => {
  it('[SES-088] may bring one byte at a time: text is joined before it is decoded, both ways', async () => {
    const socket = await openRouter(desk);
    const client = await raw(socket);
    const register = JSON.stringify({
      ...common,
      type: 'register',
      auth_token: 'token',
      ...registration('sé\u{1f514}'),
      postbell_version: '0.1.0',
    });
    for (const byte of Buffer.from(`${register}\n`)) {
      client.socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await arrived();
    expect(client.answers).toMatchObject([{ ok: true, request_id: 'r1' }]);
    const fake = await openFakeRouter(desk, ({ request_id }, out) => {
      const cards = [{ session_id: 'sé\u{1f514}' }];
      void (async () => {
        for (const byte of Buffer.from(`${JSON.stringify({ v: 1, request_id, ok: true, cards })}\n`)) {
          out.write(Buffer.from([byte]));
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      return undefined;
    });
    const calls = routerCalls({ socketPath: fake.socketPath, token: () => 'token' }, desk);
    atEnd(() => calls.close());
    expect(await calls.discover({ project: 'shop', limit: 5 })).toEqual([{ session_id: 'sé\u{1f514}' }]);
    expect(desk.rows('SELECT session_id FROM session')).toEqual([{ session_id: 'sé\u{1f514}' }]);
  });

  it('[SES-088] may fail late: neither end of it ends its process', async () => {
    const faults: unknown[] = [];
    const onFault = (error: unknown): void => void faults.push(error);
    process.on('uncaughtException', onFault);
    process.on('unhandledRejection', onFault);
    atEnd(() => {
      process.off('uncaughtException', onFault);
      process.off('unhandledRejection', onFault);
    });
    const opened: Socket[] = [];
    const { prototype } = Socket;
    const { on } = prototype;
    prototype.on = function watched(this: Socket, ...words: Parameters<Socket['on']>) {
      if (!opened.includes(this)) opened.push(this);
      return on.apply(this, words);
    } as Socket['on'];
    atEnd(() => {
      prototype.on = on;
    });
    const socket = await openRouter(desk);
    const client = await connectRouter(socket, desk);
    await client.request({ type: 'status', auth_token: 'token' }, 1_000);
    // Answers that nobody is there to read any more.
    for (let n = 0; n < 20; n += 1) {
      const gone = await raw(socket);
      gone.socket.write(`${discover()}\n`.repeat(50));
      gone.socket.destroy();
    }
    client.close();
    await arrived();
    expect(opened.length).toBeGreaterThan(40);
    for (const one of opened) one.emit('error', new Error('late'));
    await arrived();
    expect(faults).toEqual([]);
    expect(await (await raw(socket)).say(discover())).toBe('ok');
  });
});

describe('a sender', () => {
  it('[MSG-029, MSG-031, SES-115] waits 12 s for an exact session and 2 s for anything else; what was written then is a time-out', async () => {
    const fake = await openFakeRouter(desk, () => undefined);
    const calls = routerCalls({ socketPath: fake.socketPath, token: () => 'token' }, desk);
    atEnd(() => calls.close());
    const asked: [() => Promise<unknown>, number][] = [
      [() => calls.discover({ project: 'shop', limit: 5 }), 2_000],
      [() => calls.notify({ project: 'shop', delivery_id: 'd', wait: false }), 2_000],
      [() => calls.notify({ project: 'shop', delivery_id: 'd', wait: true }), 12_000],
    ];
    for (const [ask, waitMs] of asked) {
      let code: string | undefined;
      void ask().catch((error: Fault) => {
        ({ code } = error);
      });
      await pass(desk.clock, waitMs - 1, 1_000);
      expect(code).toBeUndefined();
      await pass(desk.clock, 1);
      expect(code).toBe('router_timeout');
    }
    expect(fake.asked.map(({ type }) => type)).toEqual(['discover', 'notify', 'notify']);
  });

  it('[SES-115] that could not write anything is told that the router was not reached', async () => {
    const socketPath = path.join(temporaryDirectory(), 'hangs.sock');
    const listens = `require('node:net').createServer().listen({ path: process.argv[1], backlog: 1 }, () => console.log('up'))`;
    const hanging = spawn(process.execPath, ['-e', listens, socketPath]);
    atEnd(() => hanging.kill('SIGKILL'));
    await new Promise((resolve) => hanging.stdout.once('data', resolve));
    hanging.kill('SIGSTOP');
    chmodSync(socketPath, 0o600);
    // Its queue is full: no connection is made any more.
    const queued: Socket[] = [];
    let full = false;
    while (!full) {
      const one = connect(socketPath);
      queued.push(one);
      full = await new Promise<boolean>((resolve) => {
        one.on('connect', () => resolve(false));
        one.on('error', () => resolve(true));
      });
    }
    const calls = routerCalls({ socketPath, token: () => 'token' }, desk);
    await expect(calls.discover({ project: 'shop', limit: 5 })).rejects.toMatchObject({
      code: 'router_unreachable',
    });
    for (const one of queued) one.destroy();
  });

  it('[SES-142] to an exact session on Windows stores the message, and is told that no router can be reached', async () => {
    const places = placesOf({ HOME: desk.directory, POSTBELL_DB: desk.path });
    const calls = routerCalls(routerAddress(places, 'win32'), desk);
    desk.router = calls;
    const sent = letter({ target_kind: 'session', recipient: 's1', payload: 'kept' });
    const { code, details } = refused(await post(desk, sent));
    expect(code).toBe('router_unreachable');
    const stored = desk.store.read((tx) => tx.messages.byId(String(details?.message_id)));
    expect(stored).toMatchObject({ waiting: true, message: { delivery_id: details?.delivery_id } });
    for (const file of [places.routerSocket, places.routerToken, places.routerLock])
      expect(existsSync(file)).toBe(false);
    const elsewhere = () => routerAddress(places, 'linux').token();
    expect(elsewhere).toThrow(Fault);
    expect(elsewhere).toThrow(/no router has left a token/);
    const fake = await openFakeRouter(desk, () => ({ ok: true, delivered: true }));
    writeFileSync(places.routerToken, 'x\n', { mode: 0o600 });
    const there = { ...places, routerSocket: fake.socketPath };
    desk.router = routerCalls(routerAddress(there, 'win32'), desk);
    const again = letter({ target_kind: 'session', recipient: 's1' });
    expect(refused(await post(desk, again)).code).toBe('router_unreachable');
    expect(fake.came).toBe(0);
    expect(routerAddress(there, 'linux').token()).toBe('x');
  });
});
