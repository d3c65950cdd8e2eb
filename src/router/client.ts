// The other end of the router's socket: requests out, answers matched by request id, the router's own frames handed
// to whoever listens.

import { connect, type Socket } from 'node:net';
import type { Clock } from '../ports/clock.ts';
import { Fault } from '../protocol/errors.ts';
import { type Answer, type Incoming, readIncoming, writeFrame } from '../protocol/frames.ts';
import { limits } from '../protocol/limits.ts';
import { lineReader } from './lines.ts';
import { checkSocket } from './socket-owner.ts';

export type RouterFrame = Extract<Incoming, { kind: 'frame' }>;

export interface RouterClient {
  /**
   * Fault with the router's code; `router_timeout` when no answer came, `connection_closed`, `invalid_response` for what
   * is no answer of a router, `router_version_mismatch` for one in another wire version's shape.
   */
  request(
    frame: { type: string; [field: string]: unknown },
    waitMs: number,
  ): Promise<Record<string, unknown>>;
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
  const asked = new Asked(ports.clock);

  const take = (line: string): void => {
    const incoming = readIncoming(line);
    if (incoming.kind === 'frame') {
      events.onFrame?.(incoming);
      return;
    }
    const wrong = incoming.kind === 'answer' ? asked.take(incoming) : unreadable(incoming.kind);
    if (wrong === undefined) return;
    asked.fail(wrong);
    socket.destroy();
  };
  socket.on(
    'data',
    lineReader(limits.answerBytesMax, take, () => {
      asked.fail(unreadable('invalid'));
      socket.destroy();
    }),
  );
  socket.on('close', () => {
    asked.fail(closed());
    events.onClose?.();
  });

  return {
    request: (frame, waitMs) => {
      if (socket.destroyed) return Promise.reject(closed());
      const { request_id, answered } = asked.expect(waitMs);
      socket.write(writeFrame({ ...frame, request_id }));
      return answered;
    },
    close: () => socket.destroy(),
  };
}

const closed = (): Fault => new Fault('connection_closed', 'the router closed the connection');

const unreadable = (kind: 'foreign' | 'invalid'): Fault =>
  kind === 'foreign'
    ? new Fault('router_version_mismatch', 'what answers at the socket speaks another wire version')
    : new Fault('invalid_response', 'what answers at the socket is no answer of a router');

interface Entry {
  settle(answer: Answer): void;
  fail(fault: Fault): void;
}

/** The requests of one connection that wait for their answer. */
class Asked {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Entry>();
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  expect(waitMs: number): { request_id: string; answered: Promise<Record<string, unknown>> } {
    this.#last += 1;
    const request_id = `r${this.#last}`;
    const answered = new Promise<Record<string, unknown>>((resolve, reject) => {
      const done = (): void => {
        cancel();
        this.#waiting.delete(request_id);
      };
      const fail = (fault: Fault): void => {
        done();
        reject(fault);
      };
      const cancel = this.#clock.after(waitMs, () =>
        fail(new Fault('router_timeout', `no answer within ${waitMs} ms`)),
      );
      const settle = (answer: Answer): void => {
        done();
        if (answer.ok) resolve(answer);
        else reject(refusal(answer));
      };
      this.#waiting.set(request_id, { settle, fail });
    });
    return { request_id, answered };
  }

  /** @returns why nothing more can be believed on this connection; undefined where all is well */
  take({ request_id, answer }: Extract<Incoming, { kind: 'answer' }>): Fault | undefined {
    // The router could not read whose answer it is: then it is everybody's.
    if (!answer.ok && (request_id === '' || answer.error.code === 'unsupported_version'))
      return refusal(answer);
    if (!this.#isOurs(request_id))
      return answer.ok ? new Fault('invalid_response', 'an answer to what was never asked') : undefined;
    this.#waiting.get(request_id)?.settle(answer);
    return undefined;
  }

  fail(fault: Fault): void {
    for (const entry of this.#waiting.values()) entry.fail(fault);
  }

  /** Also one that is no longer waited for. */
  #isOurs(requestId: string): boolean {
    const number = /^r([1-9]\d{0,14})$/.exec(requestId)?.[1];
    return number !== undefined && Number(number) <= this.#last;
  }
}

function refusal({ error }: Extract<Answer, { ok: false }>): Fault {
  return error.code === 'unsupported_version'
    ? new Fault('router_version_mismatch', 'what answers at the socket speaks another wire version')
    : new Fault(error.code, error.message);
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
    socket.on('error', (error: NodeJS.ErrnoException) => unreachable(error.code ?? 'error', error));
    socket.once('connect', () => {
      cancel();
      socket.removeAllListeners('error');
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
  });
}
