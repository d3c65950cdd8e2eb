// How a connection to Codex's app-server ends, and what is said of it to whoever waits for an answer.

import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { type AppServer, connectAppServer } from '../../src/hosts/codex/app-server.ts';
import { releaseSubmission } from '../../src/hosts/codex/release.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { temporaryDirectory } from './desk.ts';

const mebibyte = 1_048_576;
let server: Server;
let socketPath: string;
/** What the server does when it is asked. */
let act: (socket: WebSocket, method: string) => void;
beforeEach(async () => {
  socketPath = path.join(temporaryDirectory(), 's.sock');
  server = createServer();
  new WebSocketServer({ server }).on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data) => {
      const { id, method } = JSON.parse((data as Buffer).toString('utf8')) as { id?: number; method: string };
      if (method === 'initialize') socket.send(JSON.stringify({ id, result: {} }));
      else if (id !== undefined) act(socket, method);
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const open = async (): Promise<AppServer> => {
  const opened = await connectAppServer(connect(socketPath), { clock: systemClock, waitMs: 10_000 });
  if (typeof opened === 'string') throw new Error(opened);
  return opened;
};
const padded = (bytes: number): string => JSON.stringify({ id: 2, result: { data: 'x'.repeat(bytes) } });
/** Its reserved bits are set, which mean nothing here. */
const noFrame = Buffer.from([0xf1, 0x00]);
const raw = (socket: WebSocket): { write(bytes: Buffer): void } =>
  (socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket;

it.each([
  ['closed', 'closed its connection', (socket: WebSocket) => socket.terminate()],
  ['closed', 'closed its connection', (socket: WebSocket) => socket.close()],
  [
    'too_long',
    'sent a longer message than is taken from it',
    (socket: WebSocket) => socket.send(padded(32 * mebibyte)),
  ],
  ['unreadable', 'gave no answer that can be read', (socket: WebSocket) => raw(socket).write(noFrame)],
] as const)('an end that is %s is told as that: the server %s', async (why, words, does) => {
  act = does;
  const asked = await open();
  expect(await asked.request('thread/read', {})).toEqual({ lost: why });
  expect(await asked.closed).toBe(why);
  expect(await asked.request('thread/read', {})).toEqual({ lost: why });
  const again = await open();
  await expect(
    releaseSubmission(again, { thread_id: 't', submission_id: 's' }, () => true),
  ).rejects.toMatchObject({
    code: 'adapter_error',
    message: `the app-server ${words}`,
  });
});

it('goes on after a message that is as long as one may be', async () => {
  act = (socket) => socket.send(padded(32 * mebibyte - padded(0).length));
  const asked = await open();
  expect(await asked.request('thread/read', {})).toMatchObject({ result: { data: expect.any(String) } });
  asked.close();
  expect(await asked.closed).toBe('closed');
});
