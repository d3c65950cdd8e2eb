// The router's socket: lines in, answers out.

import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../ports/log.ts';
import { assert } from '../protocol/assert.ts';
import { describeError, type ErrorCode, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { type RequestFrame, readRequest } from '../protocol/frames.ts';
import { limits } from '../protocol/limits.ts';
import { closeLeftOpen, expireLeases } from '../sessions/disconnect.ts';
import type { Switchboard } from '../sessions/switchboard.ts';
import { Connections, type Peer, writeTo } from './connections.ts';
import { Dispatches } from './dispatches.ts';
import { dropPeer, type Handlers, handlersOf, type RouterContext, type StopCause } from './handlers.ts';
import { lineReader } from './lines.ts';
import { FrameRate } from './rate.ts';

const counted = new Set<RequestFrame['type']>(['register', 'heartbeat', 'discover']);
/** What changes who a client is, one after another. */
const ordered = new Set<RequestFrame['type']>(['register', 'heartbeat', 'disconnect']);

export interface RouterOptions {
  ports: Omit<Switchboard, 'hand'>;
  token: string;
  log: Log;
  pid: number;
  version: string;
  /** What `status` says beside that. */
  more?: () => object;
  /** Called by an authenticated `stop`, and where a newer host was refused. */
  stop(why: StopCause): void;
}

export interface RouterServer {
  /** Closes what an earlier router left open, then takes connections at `socketPath`. */
  listen(socketPath: string): Promise<void>;
  /** Hands over what came in by another way than a client. */
  handOver(project: string, deliveryId: string): void;
  /** Ends the connections whose lease has run out. */
  expireLeases(): Promise<void>;
  /** Ends every registration with `router_restart`. */
  close(): Promise<void>;
}

export function routerServer({ ports, token, log, pid, version, more, stop }: RouterOptions): RouterServer {
  const { hostOutcomeWaitMs } = ports;
  assert(
    hostOutcomeWaitMs >= limits.hostOutcomeWaitMsMin && hostOutcomeWaitMs <= limits.hostOutcomeWaitMsMax,
    'a host is given 100 ms to 10 min',
  );
  const startedMs = ports.clock.elapsedMs();
  const connections = new Connections(ports.clock, hostOutcomeWaitMs);
  const board: Switchboard = {
    ...ports,
    hand: (connection, handOff) => connections.hand(connection, handOff),
  };
  const describe = (): object => ({
    pid,
    uptime_ms: Math.round(ports.clock.elapsedMs() - startedMs),
    ...more?.(),
  });
  const context: RouterContext = { board, connections, token, log, version, stop, describe };
  const sockets = new Set<Socket>();
  const dispatches = new Dispatches(context);
  const server = createServer(acceptor(context, dispatches, sockets));
  return {
    listen: async (socketPath) => {
      await closeLeftOpen(ports);
      await listening(server, socketPath);
    },
    // Failures are logged where they are met.
    handOver: (project, deliveryId) => void dispatches.begin(project, deliveryId).catch(() => {}),
    expireLeases: async () => {
      for (const id of await expireLeases(ports)) connections.remove(id);
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.allSettled(connections.all().map((peer) => dropPeer(context, peer, 'router_restart')));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function listening(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, () => resolve());
  });
}

/** Takes one client; an error on its socket ends that client and nothing else. */
function acceptor(
  context: RouterContext,
  dispatches: Dispatches,
  sockets: Set<Socket>,
): (socket: Socket) => void {
  const handlers = handlersOf(context, dispatches);
  const { clock } = context.board;
  const failed = (what: string) => (error: unknown) =>
    context.log.warn(what, { code: describeError(error).code });

  const handle = async (peer: Peer, frame: RequestFrame): Promise<Result<object>> => {
    if (counted.has(frame.type) && !peer.rate.take())
      return new Refusal('rate_limited', 'too many frames in a minute');
    try {
      if (!ordered.has(frame.type)) return await perform(handlers, peer, frame);
      const turn = peer.turn.then(() => perform(handlers, peer, frame));
      peer.turn = turn.catch(() => {});
      return await turn;
    } catch (error) {
      const { code, message } = describeError(error);
      context.log.warn('request failed', { type: frame.type, code });
      return new Refusal(code, message);
    }
  };

  const answer = async (peer: Peer, line: string): Promise<void> => {
    const { request_id, frame } = readRequest(line);
    const result = isRefusal(frame) ? frame : await handle(peer, frame);
    if (!isRefusal(result)) return writeTo(peer, { ok: true, request_id, ...result });
    refuse(peer, request_id, result);
  };

  return (socket) => {
    sockets.add(socket);
    const rate = new FrameRate(clock);
    const peer: Peer = { socket, connection: undefined, turn: Promise.resolve(), rate };
    const tooLarge = new Refusal('frame_too_large', `a frame is at most ${limits.frameBytesMax} bytes`);
    const take = (line: string): void => {
      answer(peer, line).catch(failed('answer failed'));
    };
    socket.on(
      'data',
      lineReader(limits.frameBytesMax, take, () => refuse(peer, '', tooLarge)),
    );
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      peer.turn.then(() => dropPeer(context, peer, 'socket_closed')).catch(failed('drop failed'));
    });
  };
}

function perform(
  handlers: Handlers,
  peer: Peer,
  frame: RequestFrame,
): Result<object> | Promise<Result<object>> {
  // Each handler takes the fields of its own type; the pairing is by construction of the frame.
  const handler = handlers[frame.type] as (
    peer: Peer,
    fields: unknown,
  ) => Result<object> | Promise<Result<object>>;
  return handler(peer, frame.fields);
}

const closing = new Set<ErrorCode>(['authentication_failed', 'frame_too_large']);

/** An answer with a code; after some the connection is closed, since nothing true can follow. */
function refuse(peer: Peer, request_id: string, { code, message }: Refusal): void {
  writeTo(peer, { ok: false, request_id, error: { code, message } });
  if (closing.has(code)) peer.socket.end();
}
