// The router's handlers over a scene's use cases, without a socket: processes that register, and the frames each gets.

import type { Socket } from 'node:net';
import type { NotifyAnswer } from '../../src/ports/router.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { Connections, type Peer } from '../../src/router/connections.ts';
import { Dispatches } from '../../src/router/dispatches.ts';
import { dropPeer, type Handlers, handlersOf, type RouterContext } from '../../src/router/handlers.ts';
import { FrameRate } from '../../src/router/rate.ts';
import { registration, type Scene } from './desk.ts';

export type Frame = Record<string, unknown>;

export interface Key {
  connection_id: string;
  generation: number;
  lease_ms: number;
  drain_scheduled: boolean;
  postbell_version: string;
}

export interface Client {
  peer: Peer;
  /** What it was sent by the router, oldest first. */
  frames: Frame[];
  key: Key;
  /** Of the hand-offs alone. */
  handed(): string[];
  accept(frame: Frame | undefined, over?: Frame): Promise<unknown>;
  reject(frame: Frame | undefined, failure_code?: string): Promise<unknown>;
  /** Renews its lease. */
  beat(): Promise<unknown>;
  /** Its socket closes. */
  leave(): Promise<void>;
}

export interface Exchange {
  handlers: Handlers;
  stops: string[];
  /** A process that registers the session; throws where it is refused. */
  join(session_id: string, over?: Frame): Promise<Client>;
  /** The answer to a registration, whatever it is. */
  ask(session_id: string, over?: Frame): Promise<unknown>;
  notify(delivery_id: string, over?: Frame): Promise<NotifyAnswer>;
  status(): Promise<unknown>;
}

export const credentials = { auth_token: 'token', postbell_version: '0.1.0' };

/** @param over another version of the router, or another run of it */
export function openExchange(desk: Scene, over: { version?: string; instance?: string } = {}): Exchange {
  const connections = new Connections(desk.clock, 10_000);
  const board = {
    ...desk.board,
    instance: over.instance ?? desk.board.instance,
    hand: connections.hand.bind(connections),
  };
  const stops: string[] = [];
  const context: RouterContext = {
    board,
    connections,
    token: 'token',
    log: { info: () => {}, warn: () => {} },
    version: over.version ?? '0.1.0',
    describe: () => ({}),
    stop: (why) => void stops.push(why),
  };
  const handlers = handlersOf(context, new Dispatches(context));
  const ask: Exchange['ask'] = (session_id, more = {}) =>
    Promise.resolve(
      handlers.register(newPeer(desk).peer, { ...credentials, ...registration(session_id), ...more }),
    );
  return {
    handlers,
    stops,
    ask,
    join: async (session_id, more = {}) => {
      const { peer, frames } = newPeer(desk);
      const fields = { ...credentials, ...registration(session_id), ...more };
      const result = await handlers.register(peer, fields);
      if (isRefusal(result)) throw new Error(`${result.code}: ${result.message}`);
      const key = result as Key;
      return clientOf(context, handlers, peer, frames, key);
    },
    notify: async (delivery_id, more = {}) => {
      const asked = { auth_token: 'token', project: 'shop', delivery_id, wait: true, ...more };
      return (await handlers.notify(newPeer(desk).peer, asked)) as NotifyAnswer;
    },
    status: async () => handlers.status(newPeer(desk).peer, credentials),
  };
}

function clientOf(context: RouterContext, handlers: Handlers, peer: Peer, frames: Frame[], key: Key): Client {
  const of = (frame: Frame | undefined) => ({
    attempt_id: String(frame?.attempt_id),
    delivery_id: String(frame?.delivery_id),
    connection_id: key.connection_id,
    generation: key.generation,
  });
  return {
    peer,
    frames,
    key,
    handed: () =>
      frames.filter(({ type }) => type === 'deliver').map(({ delivery_id }) => String(delivery_id)),
    accept: async (frame, over = {}) =>
      handlers.host_accept(peer, { ...of(frame), content: 'notice', receipt: { taken: true }, ...over }),
    reject: async (frame, failure_code = 'adapter_rejected') =>
      handlers.host_reject(peer, { ...of(frame), failure_code }),
    beat: async () => {
      const { project, session_id } = registration(String(peer.connection?.session_id));
      return handlers.heartbeat(peer, { project, session_id, ...of(undefined) });
    },
    leave: () => dropPeer(context, peer, 'socket_closed'),
  };
}

export function newPeer(desk: Scene): { peer: Peer; frames: Frame[] } {
  const frames: Frame[] = [];
  const write = (line: string): boolean => frames.push(JSON.parse(line) as Frame) > 0;
  const socket = { destroyed: false, write } as unknown as Socket;
  return {
    peer: { socket, connection: undefined, turn: Promise.resolve(), rate: new FrameRate(desk.clock) },
    frames,
  };
}
