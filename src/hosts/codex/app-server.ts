// A client of Codex's app-server: JSON-RPC, one message a text frame, over a WebSocket on a stream that is handed in (the
// stdio of `codex app-server proxy`, or the server's own socket). What the server cannot do is known by its own error.

import type { Duplex } from 'node:stream';
import WebSocket from 'ws';
import type { Clock } from '../../ports/clock.ts';
import { isObject } from '../../protocol/json.ts';
import { version } from '../../protocol/version.ts';

/** Larger than any page of a queue that this client asks for. */
const messageBytesMax = 32 * 1_048_576;

/** The library's word for a message beyond it, at which it closes the connection. */
const tooLong = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

export interface RpcError {
  code: number;
  message: string;
}

/**
 * How a connection ended: by the other side, or by this one, since what came was longer than any message may be, or no message of
 * that protocol.
 */
export type Ended = 'closed' | 'too_long' | 'unreadable';

/** In words that end the sentence "the app-server …". */
export const endedWords: Readonly<Record<Ended, string>> = {
  closed: 'closed its connection',
  too_long: 'sent a longer message than is taken from it',
  unreadable: 'gave no answer that can be read',
};

/** `lost`: no answer within the time, none any more, or one that is none; the server may have done what was asked. */
export type Reply = { result: Record<string, unknown> } | { error: RpcError } | { lost: 'timeout' | Ended };

export interface AppServerOptions {
  clock: Clock;
  /** Of the handshake, and of each request that says nothing else. */
  waitMs: number;
  onNotification?(method: string, params: Record<string, unknown>): void;
  /**
   * The server asks; what is returned is its answer. Absent, or undefined: it is told that nobody answers. `withdrawn`: it
   * wants none any more.
   */
  onRequest?(
    method: string,
    params: Record<string, unknown>,
    withdrawn: AbortSignal,
  ): Promise<object | undefined>;
}

export interface AppServer {
  request(method: string, params: object, waitMs?: number): Promise<Reply>;
  /** Resolves when the connection has ended. */
  closed: Promise<Ended>;
  close(): void;
}

type Unopened = 'timeout' | 'closed' | 'refused';

/** Connects and introduces this client. `refused`: what answered is no app-server, or takes no such client. */
export async function connectAppServer(
  stream: Duplex,
  options: AppServerOptions,
): Promise<AppServer | Unopened> {
  const socket = new WebSocket('ws://localhost/', {
    createConnection: () => stream as never,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
  });
  const connection = new Connection(socket, options);
  const opened = await connection.opened();
  if (opened !== 'open') return opened;
  const introduced = await connection.request('initialize', {
    clientInfo: { name: 'postbell', title: null, version },
    capabilities: { experimentalApi: true },
  });
  if ('result' in introduced) {
    connection.notify('initialized');
    return connection;
  }
  connection.close();
  const why = 'lost' in introduced ? introduced.lost : undefined;
  return why === 'timeout' || why === 'closed' ? why : 'refused';
}

class Connection implements AppServer {
  readonly #socket: WebSocket;
  readonly #options: AppServerOptions;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  /** What the server has asked, and nobody has answered. */
  readonly #asked = new Map<unknown, AbortController>();
  readonly closed: Promise<Ended>;
  #nextId = 1;
  #isOver = false;
  /** Once it is over. */
  #ended: Ended = 'closed';

  constructor(socket: WebSocket, options: AppServerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.closed = new Promise((resolve) =>
      socket.once('close', () => {
        this.#isOver = true;
        for (const settle of this.#waiting.values()) settle({ lost: this.#ended });
        for (const question of this.#asked.values()) question.abort();
        resolve(this.#ended);
      }),
    );
    // A close follows each error.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code?.startsWith('WS_ERR_')) this.#ended = code === tooLong ? 'too_long' : 'unreadable';
    });
    socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#take(textOf(data));
    });
  }

  opened(): Promise<'open' | Unopened> {
    return new Promise((resolve) => {
      const settle = (how: 'open' | Unopened): void => {
        cancel();
        resolve(how);
        if (how !== 'open') this.close();
      };
      const cancel = this.#options.clock.after(this.#options.waitMs, () => settle('timeout'));
      this.#socket.once('open', () => settle('open'));
      this.#socket.once('unexpected-response', () => settle('refused'));
      void this.closed.then(() => settle('closed'));
    });
  }

  request(method: string, params: object, waitMs = this.#options.waitMs): Promise<Reply> {
    if (this.#isOver) return Promise.resolve({ lost: this.#ended });
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve) => {
      const settle = (reply: Reply): void => {
        cancel();
        this.#waiting.delete(id);
        resolve(reply);
      };
      const cancel = this.#options.clock.after(waitMs, () => settle({ lost: 'timeout' }));
      this.#waiting.set(id, settle);
      this.#send({ id, method, params });
    });
  }

  notify(method: string): void {
    this.#send({ method });
  }

  close(): void {
    this.#socket.terminate();
  }

  #send(message: object): void {
    // What cannot be sent is answered by the close.
    if (!this.#isOver) this.#socket.send(JSON.stringify(message), () => {});
  }

  #take(text: string): void {
    const message = parsed(text);
    if (message === undefined) return;
    const { id, method, params, result, error } = message;
    const about = objectOf(params);
    if (typeof method === 'string' && (typeof id === 'number' || typeof id === 'string'))
      void this.#answer(id, method, about);
    else if (method === 'serverRequest/resolved') this.#asked.get(about.requestId)?.abort();
    else if (typeof method === 'string') this.#options.onNotification?.(method, about);
    else if (typeof id === 'number') this.#waiting.get(id)?.(replyOf(error, result));
  }

  async #answer(id: number | string, method: string, params: Record<string, unknown>): Promise<void> {
    const question = new AbortController();
    this.#asked.set(id, question);
    const result = await this.#options.onRequest?.(method, params, question.signal).catch(() => undefined);
    this.#asked.delete(id);
    if (question.signal.aborted) return;
    const unanswered = { code: -32601, message: 'this client does not answer that' };
    this.#send(result === undefined ? { id, error: unanswered } : { id, result });
  }
}

/** One of the two, and in its form: of anything else nothing follows. */
function replyOf(error: unknown, result: unknown): Reply {
  const [refused, answered] = [error ?? null, result ?? null];
  if (isObject(refused) && answered === null && typeof refused.code === 'number')
    return { error: { code: refused.code, message: textIn(refused.message) } };
  return refused === null && isObject(answered) ? { result: answered } : { lost: 'unreadable' };
}

const textOf = (data: WebSocket.RawData): string =>
  (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8');

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Of a thread or turn that the server names. */
export const idOf = (turn: unknown): string | undefined =>
  isObject(turn) && typeof turn.id === 'string' && turn.id !== '' ? turn.id : undefined;
