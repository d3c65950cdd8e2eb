// A server before a relay that a test may break: as a proxy does that stands in the wrong place, or a relay that is unwell.

import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { relayHost } from './machines.ts';

/** How it answers instead of the relay; undefined where it says nothing at all. */
export type Answer = ((response: ServerResponse) => void) | undefined;

export interface Front {
  /** What the users of the relay are told. */
  origin: string;
  /** From now on; what was asked before is broken off. */
  answer(how: Answer): void;
  /** Nothing listens any more. */
  shut(): Promise<void>;
  /** All is passed on again, after that many milliseconds. */
  mend(afterMs?: number): Promise<void>;
  end(): Promise<void>;
}

export async function openFront(relay: { port: number }): Promise<Front> {
  const open = new Set<Socket>();
  let how: 'passes' | Answer = 'passes';
  let lateMs = 0;
  const pass = (asked: IncomingMessage, response: ServerResponse): void => {
    const { method = 'GET', url = '/', headers } = asked;
    const passed = request({ host: relayHost, port: relay.port, path: url, method, headers }, (answered) => {
      response.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    asked.pipe(passed);
  };
  const server = createServer((asked, response) => {
    if (how !== 'passes') how?.(response);
    else if (lateMs === 0) pass(asked, response);
    else setTimeout(() => pass(asked, response), lateMs);
  });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.3', () => resolve()));
  const breakOff = (): void => {
    for (const one of open) one.destroy();
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const shut = async (): Promise<void> => {
    const closed = server.listening ? new Promise((resolve) => server.close(resolve)) : undefined;
    breakOff();
    await closed;
  };
  return {
    origin: `http://127.0.0.3:${port}`,
    answer: (next) => {
      how = next;
      breakOff();
    },
    shut,
    mend: async (afterMs = 0) => {
      how = 'passes';
      lateMs = afterMs;
      breakOff();
      if (!server.listening) await listen(port);
    },
    end: shut,
  };
}
