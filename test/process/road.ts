// The road to a relay, at an address of its own: it can be cut, and it can stop at a word that passes, so that whoever said it may be
// killed before it is heard.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { relayHost } from './machines.ts';

export interface Road {
  /** What the users of the relay are told. */
  origin: string;
  cut(): void;
  mend(): void;
  /**
   * From the first one on that holds this text, nothing that its user says (`out`), or is told (`in`), gets through on that connection.
   * @returns once one has come
   */
  stopAt(text: string, way: 'out' | 'in'): Promise<void>;
  end(): Promise<void>;
}

interface Stop {
  text: string;
  way: 'out' | 'in';
  seen(): void;
}

export async function openRoad(relay: { port: number }): Promise<Road> {
  const open = new Set<Socket>();
  let isCut = false;
  let stop: Stop | undefined;
  /** Bytes from one end to the other, until it stops. */
  const carry = (from: Socket, to: Socket, way: Stop['way']): void => {
    let stopped = false;
    from.on('data', (chunk: Buffer) => {
      if (!stopped && stop?.way === way && chunk.includes(stop.text)) {
        stopped = true;
        stop.seen();
        stop = undefined;
      }
      if (!stopped) to.write(chunk);
    });
  };
  const server = createServer((near) => {
    const far = connect(relay.port, relayHost);
    for (const one of [near, far]) {
      open.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        open.delete(one);
        near.destroy();
        far.destroy();
      });
    }
    if (isCut) near.destroy();
    carry(near, far, 'out');
    carry(far, near, 'in');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.3', resolve));
  const close = (): void => {
    for (const one of open) one.destroy();
  };
  return {
    origin: `http://127.0.0.3:${(server.address() as AddressInfo).port}`,
    cut: () => {
      isCut = true;
      close();
    },
    mend: () => {
      isCut = false;
    },
    stopAt: (text, way) =>
      new Promise((seen) => {
        stop = { text, way, seen };
      }),
    end: () => {
      close();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
