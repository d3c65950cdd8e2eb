// A line to a relay on loopback that goes dead as a real one does: nothing passes, no connection is closed, and what was under way comes
// once it is mended.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface SilentLine {
  /** What its users are told. */
  origin: string;
  /** Nothing passes, in either direction. */
  cut(): void;
  /** Answers do not pass; what is asked does. */
  mute(): void;
  mend(): void;
  end(): Promise<void>;
}

interface Pair {
  near: Socket;
  far: Socket;
}

export async function openLine(relay: { host: string; port: number }): Promise<SilentLine> {
  const open = new Set<Pair>();
  let passes = { there: true, back: true };
  const flow = (from: Socket, to: Socket, may: boolean): void => {
    from.unpipe(to);
    if (may) from.pipe(to);
    else from.pause();
  };
  const apply = ({ near, far }: Pair): void => {
    flow(near, far, passes.there);
    flow(far, near, passes.back);
  };
  const become = (next: typeof passes): void => {
    passes = next;
    for (const pair of open) apply(pair);
  };
  const server = createServer((near) => {
    const pair = { near, far: connect(relay.port, relay.host) };
    open.add(pair);
    for (const one of [near, pair.far]) {
      one.on('error', () => {});
      one.on('close', () => {
        open.delete(pair);
        near.destroy();
        pair.far.destroy();
      });
    }
    apply(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.3', resolve));
  return {
    origin: `http://127.0.0.3:${(server.address() as AddressInfo).port}`,
    cut: () => become({ there: false, back: false }),
    mute: () => become({ there: true, back: false }),
    mend: () => become({ there: true, back: true }),
    end: () => {
      for (const { near } of open) near.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
