// What each frame may do. The use cases decide; here is only who may ask, and on which connection.

import { equalSecrets } from '../crypto/hash.ts';
import type { Log } from '../ports/log.ts';
import { describeError, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { RequestFields, RequestType } from '../protocol/frames.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { isSessionId, readName } from '../protocol/scope.ts';
import { type ConnectionKey, type DisconnectReason, isLive, type Registration } from '../protocol/session.ts';
import { disconnect } from '../sessions/disconnect.ts';
import { discover } from '../sessions/discover.ts';
import { planDrain } from '../sessions/drain.ts';
import { heartbeat } from '../sessions/heartbeat.ts';
import { register } from '../sessions/register.ts';
import { isOutdated, supersede } from '../sessions/router-run.ts';
import type { Switchboard } from '../sessions/switchboard.ts';
import type { Connections, Peer } from './connections.ts';
import type { Dispatches } from './dispatches.ts';

export interface RouterContext {
  board: Switchboard;
  connections: Connections;
  token: string;
  log: Log;
  /** Of the product. */
  version: string;
  /** What `status` reports. */
  describe(): object;
  /** Called by an authenticated `stop`, and where a newer host was refused. */
  stop(why: StopCause): void;
}

/** Somebody asked for it, or a newer version is to take its place. */
export type StopCause = 'asked' | 'outdated';

type Handled = Result<object> | Promise<Result<object>>;
type Handler<F> = (peer: Peer, fields: F) => Handled;

export type Handlers = { readonly [K in RequestType]: Handler<RequestFields<K>> };

export function handlersOf(context: RouterContext, dispatches: Dispatches): Handlers {
  const { board, connections } = context;
  const guarded = authenticated(context.token);
  const owned = onOwnConnection(context);
  return {
    register: guarded((peer, fields) => registerPeer(context, dispatches, peer, fields)),
    heartbeat: ({ connection }, fields) => {
      const own =
        isKeyOf(connection, fields) &&
        connection.project === fields.project &&
        connection.session_id === fields.session_id;
      if (!own) return new Refusal('stale_generation', 'not the session that registered here');
      return heartbeat(board, { ...fields, lease_ms: connection.lease_ms }, (error) =>
        context.log.warn('lease not written', { code: describeError(error).code }),
      );
    },
    disconnect: owned(async (peer) => {
      await dropPeer(context, peer, 'adapter_disconnect');
      return { disconnected: true };
    }),
    discover: guarded((_, fields) => ({ cards: discover(board, fields) })),
    notify: guarded((_, { project, delivery_id, expected_generation, wait }) => {
      const running = dispatches.begin(project, delivery_id, expected_generation);
      return wait === true ? running : { delivered: false, reason: 'dispatched' };
    }),
    host_accept: owned((_, { content, receipt, ...of }) =>
      utf8Bytes(JSON.stringify(receipt)) > limits.adapterReceiptBytesMax
        ? new Refusal(
            'invalid_adapter_receipt',
            `a receipt is at most ${limits.adapterReceiptBytesMax} bytes`,
          )
        : dispatches.settle(of, { outcome: 'accepted', content, receipt }),
    ),
    host_reject: owned((_, { failure_code, ...of }) =>
      dispatches.settle(of, { outcome: 'rejected', failure_code }),
    ),
    status: guarded(() => ({
      postbell_version: context.version,
      live_connections: connections.size,
      ...context.describe(),
    })),
    stop: guarded(() => {
      board.clock.after(0, () => context.stop('asked'));
      return { stopping: true, ...context.describe() };
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

function isKeyOf(
  connection: Peer['connection'],
  { connection_id, generation }: ConnectionKey,
): connection is NonNullable<Peer['connection']> {
  return connection?.connection_id === connection_id && connection.generation === generation;
}

/** Only on the connection that registered, while it is live. */
const onOwnConnection =
  ({ board }: RouterContext) =>
  <F extends ConnectionKey>(handler: Handler<F>): Handler<F> =>
  (peer, fields) => {
    const live =
      isKeyOf(peer.connection, fields) &&
      isLive(
        board.leases.of(board.store.read((tx) => tx.sessions.connection(fields.connection_id))),
        board.clock.nowMs(),
      );
    return live
      ? handler(peer, fields)
      : new Refusal('stale_generation', 'this connection has ended or is not yours');
  };

async function registerPeer(
  context: RouterContext,
  dispatches: Dispatches,
  peer: Peer,
  fields: RequestFields<'register'>,
): Promise<Result<object>> {
  const { board, connections, log, version } = context;
  if (isOutdated(version, fields.postbell_version)) return await makeRoom(context, fields.postbell_version);
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
  const plan = planDrain(board, key.connection_id);
  // After the answer, so that the host knows who it is when the first frame comes.
  if (plan !== undefined) board.clock.after(0, () => dispatches.drain(plan));
  return { ...key, drain_scheduled: plan !== undefined, postbell_version: version };
}

/** A router older than its host stops, and is not started again as that version for a while. */
async function makeRoom({ board, log, version, stop }: RouterContext, newer: string): Promise<Refusal> {
  await supersede(board, version);
  log.info('outdated', { version, newer });
  board.clock.after(0, () => stop('outdated'));
  return new Refusal('router_outdated', `this router is ${version}, older than ${newer}; it makes room`);
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
