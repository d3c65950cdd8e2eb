// The other end of the router's socket: requests out, answers matched by request id, the router's own frames handed
// to whoever listens.

import { connect, type Socket } from 'node:net';
import type { Clock } from '../ports/clock.ts';
import { assert } from '../protocol/assert.ts';
import { Fault } from '../protocol/errors.ts';
import { type Answer, type Incoming, readIncoming, writeFrame } from '../protocol/frames.ts';
import { limits } from '../protocol/limits.ts';
import { lineReader } from './lines.ts';
import { checkSocket } from './socket-owner.ts';

export type RouterFrame = Extract<Incoming, { kind: 'frame' }>;

export interface RouterClient {
  /** Fault with the router's code, `router_timeout` when no answer came, `connection_closed`. */
  request(
    frame: { type: string; [field: string]: unknown },
    waitMs: number,
  ): Promise<Record<string, unknown>>;
  /** Writes without waiting for the answer. */
  tell(frame: { type: string; [field: string]: unknown }): void;
  close(): void;
}

export interface ClientEvents {
  onFrame?(frame: RouterFrame): void;
  onClose?(): void;
}

/** Fault `router_unreachable` where nothing listens at `socketPath` or it does not answer the connection in time. */
export async function connectRouter(
  socketPath: string,
  ports: { clock: Clock },
  events: ClientEvents = {},
): Promise<RouterClient> {
  checkSocket(socketPath);
  const socket = await opened(socketPath, ports.clock);
  const waiting = new Map<string, { answer: (answer: Answer) => void; fail: (fault: Fault) => void }>();
  let lastId = 0;

  const take = (line: string): void => {
    const incoming = readIncoming(line);
    if (incoming.kind === 'frame') events.onFrame?.(incoming);
    else if (incoming.kind === 'invalid') socket.destroy();
    else waiting.get(incoming.request_id)?.answer(incoming.answer);
  };
  socket.on(
    'data',
    lineReader(limits.answerBytesMax, take, () => socket.destroy()),
  );
  socket.on('close', () => {
    for (const entry of waiting.values())
      entry.fail(new Fault('connection_closed', 'the router closed the connection'));
    events.onClose?.();
  });

  return {
    request: (frame, waitMs) =>
      new Promise((resolve, reject) => {
        lastId += 1;
        const request_id = `r${lastId}`;
        const done = (): void => {
          cancel();
          waiting.delete(request_id);
        };
        const fail = (fault: Fault): void => {
          done();
          reject(fault);
        };
        const cancel = ports.clock.after(waitMs, () =>
          fail(new Fault('router_timeout', `no answer within ${waitMs} ms`)),
        );
        waiting.set(request_id, {
          fail,
          answer: (answer) => {
            if (!answer.ok) return fail(new Fault(answer.error.code, answer.error.message));
            done();
            resolve(answer);
          },
        });
        if (socket.destroyed) return fail(new Fault('connection_closed', 'the router closed the connection'));
        socket.write(writeFrame({ ...frame, request_id }));
      }),
    tell: (frame) => {
      assert(frame.request_id !== undefined, 'a frame without an answer carries its own id');
      if (!socket.destroyed) socket.write(writeFrame(frame));
    },
    close: () => socket.destroy(),
  };
}

function opened(socketPath: string, clock: Clock): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    const unreachable = (why: string, cause?: unknown): void => {
      cancel();
      socket.destroy();
      reject(new Fault('router_unreachable', `the router cannot be reached (${why})`, { cause }));
    };
    const cancel = clock.after(limits.routerCallWaitMs, () => unreachable('no answer'));
    socket.once('error', (error: NodeJS.ErrnoException) => unreachable(error.code ?? 'error', error));
    socket.once('connect', () => {
      cancel();
      socket.removeAllListeners('error');
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
  });
}
