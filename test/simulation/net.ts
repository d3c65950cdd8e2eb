// In place of node:net: sockets between simulated processes. Bytes arrive in order and late; what was written before a
// death still arrives, then the end. The path of a socket names the process that asks.

import type { Network } from './network.ts';
import type { Process } from './process.ts';

type Listener = (...values: never[]) => void;

/** The world that runs now; one at a time. */
let current: Network | undefined;

export function useNetwork(network: Network): void {
  current = network;
}

function network(): Network {
  if (current === undefined) throw new Error('no simulated world runs');
  return current;
}

export const pathOf = (process: Process): string => `/simulated/${process.name}`;

class Emitter {
  readonly #listeners = new Map<string, Listener[]>();

  on(event: string, listener: Listener): this {
    const list = this.#listeners.get(event);
    if (list === undefined) this.#listeners.set(event, [listener]);
    else list.push(listener);
    return this;
  }

  once(event: string, listener: Listener): this {
    return this.on(event, listener);
  }

  removeAllListeners(event: string): this {
    this.#listeners.delete(event);
    return this;
  }

  emit(event: string, ...values: unknown[]): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(...(values as never[]));
  }
}

const end = Symbol('end');

export class SimulatedSocket extends Emitter {
  destroyed = false;
  readonly writableLength = 0;
  readonly owner: Process;
  readonly #network: Network;
  readonly #stays: () => void;
  peer: SimulatedSocket | undefined;
  readonly #inbox: (string | typeof end)[] = [];
  #scheduled = false;
  #flowing = false;

  constructor(network: Network, owner: Process) {
    super();
    this.#network = network;
    this.owner = owner;
    this.#stays = owner.atDeath(() => this.#cut());
  }

  /** Its owner listens: what has come is delivered. */
  flow(): void {
    this.#flowing = true;
    this.#schedule();
  }

  write(text: string): boolean {
    if (this.destroyed) return false;
    for (const sent of this.#network.onWrite(text)) this.peer?.push(sent);
    return true;
  }

  end(): void {
    this.destroy();
  }

  destroy(): this {
    if (this.destroyed) return this;
    this.#cut();
    this.#network.later(this.owner, 'close', 0, () => this.emit('close'));
    return this;
  }

  push(item: string | typeof end): void {
    this.#inbox.push(item);
    this.#schedule();
  }

  #cut(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#stays();
    this.peer?.push(end);
  }

  #schedule(): void {
    if (this.#scheduled || !this.#flowing || this.#inbox.length === 0) return;
    this.#scheduled = true;
    this.#network.later(this.owner, 'bytes', this.#network.delayMs(), () => {
      this.#scheduled = false;
      this.#deliver();
      this.#schedule();
    });
  }

  #deliver(): void {
    const item = this.#inbox.shift();
    if (this.destroyed || item === undefined) return;
    if (typeof item === 'string') {
      this.emit('data', Buffer.from(item));
      return;
    }
    this.#cut();
    this.emit('close');
  }
}

/** As `net.connect`: `connect` or `error` comes later. */
export function connect(path: string): SimulatedSocket {
  const at = network();
  const owner = at.processAt(path);
  const socket = new SimulatedSocket(at, owner);
  at.later(owner, 'connect', at.delayMs(), () => {
    if (socket.destroyed) return;
    const server = at.server;
    if (server === undefined) {
      socket.destroyed = true;
      socket.emit('error', Object.assign(new Error('nobody listens'), { code: 'ECONNREFUSED' }));
      return;
    }
    const other = new SimulatedSocket(at, server.owner);
    socket.peer = other;
    other.peer = socket;
    at.later(server.owner, 'accept', at.delayMs(), () => {
      server.accept(other);
      other.flow();
    });
    socket.flow();
    socket.emit('connect');
  });
  return socket;
}

export class SimulatedServer extends Emitter {
  readonly #accept: (socket: SimulatedSocket) => void;

  constructor(accept: (socket: SimulatedSocket) => void) {
    super();
    this.#accept = accept;
  }

  listen(path: string, ready: () => void): void {
    const at = network();
    const owner = at.processAt(path);
    const server = { owner, accept: this.#accept };
    owner.atDeath(() => {
      if (at.server === server) at.server = undefined;
    });
    at.later(owner, 'listening', 0, () => {
      at.server = server;
      ready();
    });
  }

  close(closed: () => void): void {
    const at = network();
    if (at.server?.accept === this.#accept) at.server = undefined;
    closed();
  }
}

export function createServer(accept: (socket: SimulatedSocket) => void): SimulatedServer {
  return new SimulatedServer(accept);
}
