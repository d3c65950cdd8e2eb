// A client that costs little: on two cores, one that costs as much as the server would be what is measured.

import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  body: string;
}

/** One kept connection; one request at a time. */
export class RawLane {
  readonly #socket: Socket;
  #text = '';
  #settle: ((answer: RawAnswer) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay(true);
    this.#socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    const broken = (): void => this.#fail?.(new Error('the connection was closed'));
    this.#socket.on('close', broken).on('error', broken);
  }

  ask(head: string, body: Uint8Array | string = ''): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
      this.#socket.cork();
      this.#socket.write(`${head}host: bench\r\ncontent-length: ${length}\r\n\r\n`, 'latin1');
      if (length > 0) this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  end(): void {
    this.#fail = undefined;
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#text += text;
    const end = this.#text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#text.slice(0, end + 2))?.[1]);
    if (this.#text.length < end + 4 + length) return;
    const answer = {
      status: Number(this.#text.slice(9, 12)),
      body: this.#text.slice(end + 4, end + 4 + length),
    };
    this.#text = '';
    this.#settle?.(answer);
  }
}
