// Both ends of the router's socket in one process, under a clock that a test moves.

import { chmodSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import type { DeliverFrame } from '../../src/protocol/frames.ts';
import { Attachment, type AttachmentOptions } from '../../src/router/attachment.ts';
import { routerServer } from '../../src/router/server.ts';
import type { FakeClock } from './clock.ts';
import { atEnd, registration, type Scene, temporaryDirectory } from './desk.ts';

/** Lets what was written reach the other end, and be answered, without time passing. */
export async function arrived(): Promise<void> {
  for (let turn = 0; turn < 25; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets time pass in steps that leave room for answers. */
export async function pass(clock: FakeClock, ms: number, stepMs = 250): Promise<void> {
  await arrived();
  for (let left = ms; left > 0; left -= stepMs) {
    await clock.advance(Math.min(left, stepMs));
    await arrived();
  }
}

/** The real router of the scene at a socket; ends with the test. */
export async function openRouter(
  desk: Scene,
  over: { version?: string; hostOutcomeWaitMs?: number } = {},
): Promise<string> {
  const socketPath = path.join(temporaryDirectory(), 'router.sock');
  const router = routerServer({
    ports: { ...desk.board, hostOutcomeWaitMs: over.hostOutcomeWaitMs ?? desk.board.hostOutcomeWaitMs },
    token: 'token',
    log: { info: () => {}, warn: () => {} },
    pid: 1,
    version: over.version ?? '0.1.0',
    stop: () => {},
  });
  await router.listen(socketPath);
  chmodSync(socketPath, 0o600);
  atEnd(() => void router.close());
  return socketPath;
}

export type Words = Record<string, unknown>;

export interface FakeRouter {
  socketPath: string;
  /** What it was asked, with the time of the scene. */
  asked: (Words & { atMs: number })[];
  /** Clients that came, whether they still are there or not. */
  came: number;
  sockets: Socket[];
  /** Answers a request; a string is written as it is, undefined is silence. */
  answer: (frame: Words, socket: Socket) => Words | string | undefined;
}

/** Something at a socket that answers as the scene says. */
export async function openFakeRouter(desk: Scene, answer: FakeRouter['answer']): Promise<FakeRouter> {
  const socketPath = path.join(temporaryDirectory(), 'router.sock');
  const fake: FakeRouter = { socketPath, asked: [], came: 0, sockets: [], answer };
  const server = createServer((socket) => {
    fake.came += 1;
    fake.sockets.push(socket);
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
      const lines = text.split('\n');
      text = lines.pop() as string;
      for (const line of lines) {
        const frame = JSON.parse(line) as Words;
        fake.asked.push({ ...frame, atMs: desk.clock.nowMs() });
        const said = fake.answer(frame, socket);
        if (typeof said === 'string') socket.write(said);
        else if (said !== undefined)
          socket.write(`${JSON.stringify({ v: 1, hops: 0, request_id: frame.request_id, ...said })}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  chmodSync(socketPath, 0o600);
  atEnd(() => {
    for (const socket of fake.sockets) socket.destroy();
    server.close();
  });
  return fake;
}

export const registered = (over: Words = {}): Words => ({
  ok: true,
  connection_id: 'con_1',
  generation: 1,
  lease_ms: 60_000,
  drain_scheduled: false,
  postbell_version: '0.1.0',
  ...over,
});

export interface Attached {
  attachment: Attachment;
  taken: DeliverFrame[];
  faults: unknown[];
  /** How often it started the installed router. */
  starts: number;
}

/** Keeps a session registered at the socket; ends with the test. */
export function attached(
  desk: Scene,
  socketPath: string,
  over: Partial<AttachmentOptions['registration']> &
    Partial<Pick<AttachmentOptions, 'take' | 'startAttemptsMax' | 'onGaveUp'>> = {},
): Attached {
  const { take, startAttemptsMax, onGaveUp, ...more } = over;
  const found: Omit<Attached, 'attachment'> = { taken: [], faults: [], starts: 0 };
  const attachment = new Attachment({
    address: { socketPath, token: () => 'token' },
    registration: registration('s1', more),
    clock: desk.clock,
    random: desk.random,
    startRouter: () => {
      whole.starts += 1;
    },
    endRouter: () => 'kill 4711',
    take: (handOff) => {
      found.taken.push(handOff);
      return take === undefined ? Promise.resolve({ content: 'notice', receipt: {} }) : take(handOff);
    },
    ...(startAttemptsMax !== undefined && { startAttemptsMax }),
    ...(onGaveUp !== undefined && { onGaveUp }),
    onFault: (fault) => found.faults.push(fault),
  });
  const whole: Attached = Object.assign(found, { attachment });
  atEnd(() => void attachment.close());
  return whole;
}
