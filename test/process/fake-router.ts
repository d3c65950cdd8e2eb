// What answers at the router's socket and is none.

import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import type { Home } from './home.ts';

/**
 * Listens in the home's data directory until the home ends, and answers each chunk with `reply`: a line, nothing at all
 * where it is undefined, or the end of the connection where it is null.
 */
export async function fakeRouter(home: Home, reply: (asked: string) => string | undefined | null) {
  const data = home.env.POSTBELL_HOME as string;
  writeFileSync(path.join(data, 'router.token'), 'x\n', { mode: 0o600 });
  const taken: Socket[] = [];
  const server = createServer((socket) => {
    taken.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      const line = reply(String(chunk));
      if (line === null) socket.destroy();
      else if (line !== undefined) socket.write(`${line}\n`);
    });
  });
  const at = path.join(data, 'router-v1.sock');
  await new Promise<void>((resolve) => server.listen(at, resolve));
  chmodSync(at, 0o600);
  home.atEnd(async () => {
    for (const socket of taken) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
}
