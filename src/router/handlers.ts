// What each frame may do. The use cases decide; here is only who may ask, and on which connection.

import { equalSecrets } from '../crypto/hash.ts';
import type { Log } from '../ports/log.ts';
import { describeError, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { RequestFields, RequestType } from '../protocol/frames.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { isSessionId, readName } from '../protocol/scope.ts';
import { type ConnectionKey, type DisconnectReason, isLive, type Registration } from '../protocol/session.ts';
import { version } from '../protocol/version.ts';
import { disconnect } from '../sessions/disconnect.ts';
import { discover } from '../sessions/discover.ts';
import { dispatch } from '../sessions/dispatch.ts';
import { heartbeat } from '../sessions/heartbeat.ts';
import { register } from '../sessions/register.ts';
import type { HostOutcome, Switchboard } from '../sessions/switchboard.ts';
import type { Connections, Peer } from './connections.ts';

export interface RouterContext {
  board: Switchboard;
  connections: Connections;
  token: string;
  log: Log;
  /** What `status` reports. */
  describe(): object;
  /** Called by an authenticated `stop`. */
  stop(): void;
}

type Handled = Result<object> | Promise<Result<object>>;
type Handler<F> = (peer: Peer, fields: F) => Handled;

export type Handlers = { readonly [K in RequestType]: Handler<RequestFields<K>> };

export function handlersOf(context: RouterContext): Handlers {
  const { board, connections } = context;
  const guarded = authenticated(context.token);
  const owned = onOwnConnection(context);
  const dispatchOnce = joining(context);
  return {
    register: guarded((peer, fields) => registerPeer(context, peer, fields)),
    heartbeat: owned(async (peer, fields) => {
      const own =
        peer.connection?.project === fields.project && peer.connection.session_id === fields.session_id;
      if (!own) return new Refusal('stale_generation', 'not the session that registered here');
      const lease_ms = peer.connection?.lease_ms;
      const result = await heartbeat(board, { ...fields, ...(lease_ms !== undefined && { lease_ms }) });
      if (isRefusal(result)) await dropPeer(context, peer, 'lease_expired');
      return result;
    }),
    disconnect: owned(async (peer) => {
      await dropPeer(context, peer, 'adapter_disconnect');
      return { disconnected: true };
    }),
    discover: guarded((_, fields) => ({ cards: discover(board, fields) })),
    notify: guarded((_, { project, delivery_id, wait }) => {
      const running = dispatchOnce(project, delivery_id);
      return wait === true ? running : { delivered: false, reason: 'dispatched' };
    }),
    host_accept: owned((_, { content, receipt, ...of }) =>
      utf8Bytes(JSON.stringify(receipt)) > limits.adapterReceiptBytesMax
        ? new Refusal(
            'invalid_adapter_receipt',
            `a receipt is at most ${limits.adapterReceiptBytesMax} bytes`,
          )
        : settle(connections, of, { outcome: 'accepted', content, receipt }),
    ),
    host_reject: owned((_, { failure_code, ...of }) =>
      settle(connections, of, { outcome: 'rejected', failure_code }),
    ),
    status: guarded(() => ({
      postbell_version: version,
      live_connections: connections.size,
      ...context.describe(),
    })),
    stop: guarded(() => {
      board.clock.after(0, context.stop);
      return { stopping: true };
    }),
  };
}

const authenticated =
  (token: string) =>
  <F extends { auth_token: string }>(handler: Handler<F>): Handler<F> =>
  (peer, fields) =>
    equalSecrets(fields.auth_token, token)
      ? handler(peer, fields)
      : new Refusal('authentication_failed', 'wrong router token');

/** Only on the connection that registered, while it is live. */
const onOwnConnection =
  ({ board }: RouterContext) =>
  <F extends ConnectionKey>(handler: Handler<F>): Handler<F> =>
  (peer, fields) => {
    const { connection_id, generation } = fields;
    const key = peer.connection;
    const own = key?.connection_id === connection_id && key.generation === generation;
    const live =
      own &&
      isLive(
        board.store.read((tx) => tx.sessions.connection(connection_id)),
        board.clock.nowMs(),
      );
    return live
      ? handler(peer, fields)
      : new Refusal('stale_generation', 'this connection has ended or is not yours');
  };

function settle(
  connections: Connections,
  of: { attempt_id: string; delivery_id: string; connection_id: string },
  outcome: HostOutcome,
): Result<object> {
  const found = connections.settle(of, outcome);
  if (found === 'mismatch')
    return new Refusal('outcome_scope_mismatch', 'the attempt is of another delivery');
  return { correlated: found === 'correlated' };
}

async function registerPeer(
  context: RouterContext,
  peer: Peer,
  fields: RequestFields<'register'>,
): Promise<Result<object>> {
  const { board, connections, log } = context;
  const registration = readRegistration(fields);
  if (isRefusal(registration)) return registration;
  if (peer.connection !== undefined) await dropPeer(context, peer, 'adapter_disconnect');
  const result = await register(board, registration);
  if (isRefusal(result)) return result;
  const { replaced, ...key } = result;
  for (const row of replaced) connections.supersede(row);
  if (peer.socket.destroyed) {
    await disconnect(board, key.connection_id, 'socket_closed');
    return new Refusal('connection_closed', 'the socket closed while it registered');
  }
  const { project, session_id, bell } = registration;
  peer.connection = { ...key, project, session_id };
  connections.add(key.connection_id, peer);
  log.info('registered', { session_id, bell, generation: key.generation });
  return { ...key, drain_scheduled: false, postbell_version: version };
}

/** The peer's registration ends, by whatever way. */
export async function dropPeer(
  { board, connections }: RouterContext,
  peer: Peer,
  reason: DisconnectReason,
): Promise<void> {
  const key = peer.connection;
  if (key === undefined) return;
  peer.connection = undefined;
  connections.remove(key.connection_id);
  await disconnect(board, key.connection_id, reason);
}

/** One operation a delivery at a time: a second notify joins the first. */
function joining({ board, log }: RouterContext): (project: string, deliveryId: string) => Promise<object> {
  const inFlight = new Map<string, Promise<object>>();
  return (project, deliveryId) => {
    const running = inFlight.get(deliveryId);
    if (running !== undefined) return running;
    const started = dispatch(board, project, deliveryId).finally(() => inFlight.delete(deliveryId));
    started.catch((error: unknown) =>
      log.warn('dispatch failed', { delivery_id: deliveryId, code: describeError(error).code }),
    );
    inFlight.set(deliveryId, started);
    return started;
  };
}

/** The registration in a frame, normalised. */
function readRegistration(fields: RequestFields<'register'>): Result<Registration> {
  const { auth_token: _, postbell_version: __, ...given } = fields;
  const project = readName('project', given.project);
  if (isRefusal(project)) return project;
  const principal_id = readName('principal_id', given.principal_id);
  if (isRefusal(principal_id)) return principal_id;
  if (!isSessionId(given.session_id)) return new Refusal('invalid_field', 'session_id is malformed');
  return { ...given, project, principal_id };
}
