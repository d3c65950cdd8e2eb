// A private socket over which one process of ours asks another: one line there, one line back. Its directory is the account's
// own; who asks shows a token.

import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';

/** A request and an answer are short. */
const lineBytesMax = 16_384;

export interface ControlSocket {
  /** Of the socket's file, by which its owner knows it later. */
  inode: string;
  /** Listens no more, and removes the file while it still is this socket. */
  close(): void;
}

export const inodeOf = (file: string): string | undefined => {
  const found = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return found?.isSocket() ? `${found.dev}:${found.ino}` : undefined;
};

/** Rejects where the path is taken. An answer may take its time; what is no line is not answered. */
export function listenPrivately(
  file: string,
  answer: (line: string) => Promise<string | undefined>,
): Promise<ControlSocket> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    firstLine(socket, (line) => {
      answer(line).then(
        (text) => (text === undefined ? socket.destroy() : socket.end(`${text}\n`)),
        () => socket.destroy(),
      );
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(file, () => {
      chmodSync(file, 0o600);
      const inode = inodeOf(file) ?? '';
      resolve({ inode, close: () => removeOwn(server, file, inode) });
    });
  });
}

/** Closing the server removes the path that it was bound to, whatever lies there by now; so a foreign file is kept aside. */
function removeOwn(server: ReturnType<typeof createServer>, file: string, inode: string): void {
  if (inodeOf(file) === inode) server.close();
  else server.unref();
}

/** The answer; undefined where nobody answers there in time. */
export function askPrivately(
  file: string,
  line: string,
  { after }: { after(ms: number, then: () => void): () => void },
  waitMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(file);
    const settle = (text: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve(text);
    };
    const cancel = after(waitMs, () => settle(undefined));
    socket.on('error', () => settle(undefined));
    socket.on('close', () => settle(undefined));
    firstLine(socket, settle);
    socket.on('connect', () => socket.write(`${line}\n`));
  });
}

/** Removes a socket that a dead process left, if it still is the one. */
export function removeSocket(file: string, inode: string): boolean {
  if (inodeOf(file) !== inode) return false;
  rmSync(file, { force: true });
  return true;
}

function firstLine(socket: Socket, take: (line: string) => void): void {
  let text = '';
  const read = (chunk: Buffer): void => {
    text += chunk.toString('latin1');
    const end = text.indexOf('\n');
    if (end < 0 && text.length <= lineBytesMax) return;
    socket.off('data', read);
    if (end < 0) socket.destroy();
    else take(Buffer.from(text.slice(0, end), 'latin1').toString('utf8'));
  };
  socket.on('data', read);
}
