// Everything that writes, each from a state of its own. What each may leave behind is asked by the tests.

import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { activate } from '../../src/mailbox/activate.ts';
import { cancelTask } from '../../src/mailbox/cancel.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { commitBatch, nextBatch } from '../../src/mailbox/listen.ts';
import { reconcile, ringForHandOff } from '../../src/mailbox/ring.ts';
import { send } from '../../src/mailbox/send.ts';
import type { Registration } from '../../src/protocol/session.ts';
import { recordSessionStart } from '../../src/sessions/alias.ts';
import { closeLeftOpen, disconnect, expireLeases } from '../../src/sessions/disconnect.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { heartbeat } from '../../src/sessions/heartbeat.ts';
import { register } from '../../src/sessions/register.ts';
import { alice, ok, sessionCaller } from '../contract/desk.ts';
import type { Stage } from './stage.ts';

export interface Action {
  name: string;
  /** Brings the store to the state that the action begins in; its writes are no points. */
  arrange(stage: Stage): Promise<void>;
  act(stage: Stage): Promise<unknown>;
  /** How many transactions change the store; 1 where nothing is said. */
  transactions?: number;
  /** A table that another process completes where this one failed. */
  leftToOthers?: string;
}

const bob = sessionCaller('s1');
const letter = (over: object = {}) => ({
  project: 'shop',
  sender: 'alice',
  recipient: 'bob',
  idempotency_key: 'key',
  payload: 'hello',
  ...over,
});
const scope = { project: 'shop', recipient: 'bob' };
const registration: Registration = {
  project: 'shop',
  principal_id: 'bob',
  session_id: 's1',
  adapter_kind: 'claude-listener',
  bell: 'listener',
  host_kind: 'claude',
};

const attach = async (stage: Stage, over = {}) =>
  ok(await register(stage.board, { ...registration, ...over }));
/** Stored, whatever its session says. */
const stored = (stage: Stage, over = {}) =>
  send({ ...stage, router: silent }, letter({ idempotency_key: 'before', ...over }), alice);
const silent = {
  notify: async () => ({ delivered: false, reason: 'dispatched' }) as const,
  discover: async () => [],
};
const messageId = (stage: Stage): string => only(stage).message_id;
const deliveryId = (stage: Stage): string => only(stage).delivery_id;

/** The one message of the inbox. */
function only(stage: Stage) {
  const [row] = stage.store.read((tx) =>
    [...tx.messages.events('shop', 'bob', 0, 9), ...tx.messages.events('shop', 's1', 0, 9)].map(
      ({ event }) => event,
    ),
  );
  if (row === undefined) throw new Error('nothing is stored');
  return row;
}

const one = (stage: Stage) => ({ ...scope, message_id: messageId(stage), idempotency_key: 'k' });
const nothing = async (): Promise<void> => {};

const sends: Action[] = [
  { name: 'send', arrange: nothing, act: (stage) => send({ ...stage, router: silent }, letter(), alice) },
  {
    name: 'send of a newer update',
    arrange: async (stage) => void (await stored(stage, { status: 'update', task_id: 't' })),
    act: (stage) => send({ ...stage, router: silent }, letter({ status: 'update', task_id: 't' }), bob),
  },
  {
    name: 'send of a task by a session',
    transactions: 2,
    arrange: nothing,
    act: (stage) => send({ ...stage, router: silent }, letter({ task_id: 't' }), bob),
  },
  {
    name: 'send to an exact session',
    transactions: 3,
    arrange: async (stage) => void (await attach(stage)),
    act: (stage) => send(stage, letter({ recipient: 's1', target_kind: 'session' }), alice),
  },
  {
    name: 'send that falls back',
    transactions: 2,
    arrange: async (stage) => {
      const { connection_id } = await attach(stage);
      await disconnect(stage.board, connection_id, 'adapter_disconnect');
    },
    act: (stage) =>
      send(stage, letter({ recipient: 's1', target_kind: 'session', fallback_to_principal: true }), alice),
  },
  {
    name: 'cancel',
    arrange: nothing,
    act: (stage) => cancelTask({ ...stage, router: silent }, { ...scope, task_id: 't' }, bob),
  },
];

const receipts: Action[] = (
  [
    ['intake', (stage) => intake(stage, { ...one(stage), state: 'fetched' }, bob)],
    ['ack', (stage) => ack(stage, one(stage), bob)],
    ['disposition', (stage) => dispose(stage, { ...one(stage), value: 'completed' }, bob)],
    ['activation', (stage) => activate(stage, { ...one(stage), value: 'woken' }, bob)],
    [
      'history that consumes',
      (stage) => history(stage, { project: 'shop', peer: 'alice', consume: true }, bob),
    ],
    [
      'acknowledge',
      (stage) =>
        acknowledge(
          stage,
          { project: 'shop', messages: [{ sender: 'local', msg_id: messageId(stage) }] },
          bob,
        ),
    ],
  ] as [string, Action['act']][]
).map(([name, act]): Action => ({ name, arrange: async (stage) => void (await stored(stage)), act }));

const sessions: Action[] = [
  { name: 'register', arrange: nothing, act: (stage) => register(stage.board, registration) },
  {
    name: 'register that replaces',
    arrange: async (stage) => void (await attach(stage)),
    act: (stage) => register(stage.board, registration),
  },
  {
    name: 'heartbeat',
    arrange: async (stage) => void (await attach(stage)),
    act: (stage) => {
      const live = stage.store.read((tx) => tx.sessions.live('shop', ['s1'], stage.clock.nowMs()));
      const key = { connection_id: String(live?.connection_id), generation: live?.generation ?? 0 };
      return heartbeat(stage.board, { ...key, work_summary: 'busy' });
    },
  },
  {
    name: 'disconnect in the middle of a hand-off',
    arrange: async (stage) => {
      await attach(stage);
      await stored(stage);
      stage.host = () => new Promise(() => {});
      void dispatch(stage.board, 'shop', deliveryId(stage));
      await stage.clock.advance(0);
    },
    act: (stage) => {
      const live = stage.store.read((tx) => tx.sessions.live('shop', ['s1'], stage.clock.nowMs()));
      return disconnect(stage.board, String(live?.connection_id), 'socket_closed');
    },
  },
  {
    name: 'expired leases',
    arrange: async (stage) => {
      await attach(stage);
      await stage.clock.advance(61_000);
    },
    act: (stage) => expireLeases(stage.board),
  },
  {
    name: 'connections of an earlier router',
    arrange: async (stage) => void (await attach(stage)),
    act: (stage) => closeLeftOpen({ ...stage.board, instance: 'run_2' }),
  },
  {
    name: 'session start after a clear',
    arrange: (stage) =>
      recordSessionStart(stage, { pid: 7, start_time: 'then' }, { session_id: 'a', source: 'startup' }),
    act: (stage) =>
      recordSessionStart(stage, { pid: 7, start_time: 'then' }, { session_id: 'b', source: 'clear' }),
  },
];

/** What goes wrong beside a ring is the store’s failure, which the scene made. */
const quiet = (): void => {};

const rings: Action[] = [
  {
    name: 'dispatch',
    transactions: 2,
    arrange: async (stage) => {
      await attach(stage);
      await stored(stage);
    },
    act: (stage) => dispatch(stage.board, 'shop', deliveryId(stage)),
    // A delivery whose attempt was begun is covered: the notifier rings for it when the reservation ends.
    leftToOthers: 'host_accept',
  },
  {
    name: 'dispatch to an exact session',
    transactions: 2,
    arrange: async (stage) => {
      await attach(stage);
      await stored(stage, { recipient: 's1', target_kind: 'session' });
    },
    act: (stage) => dispatch(stage.board, 'shop', deliveryId(stage)),
  },
  {
    name: 'dispatch that is refused',
    transactions: 2,
    arrange: async (stage) => {
      await attach(stage);
      await stored(stage);
      stage.host = () => ({ outcome: 'rejected', failure_code: 'adapter_rejected' });
    },
    act: (stage) => dispatch(stage.board, 'shop', deliveryId(stage)),
  },
  {
    name: 'ring of the notifier',
    transactions: 2,
    arrange: async (stage) => void (await stored(stage)),
    act: (stage) => reconcile(stage, { caller: bob, project: 'shop' }, listenerBell(stage), quiet),
  },
  {
    name: 'ring for a hand-off',
    arrange: async (stage) => {
      await attach(stage);
      await stored(stage);
      stage.host = () => new Promise(() => {});
      void dispatch(stage.board, 'shop', deliveryId(stage));
      await stage.clock.advance(0);
    },
    act: async (stage) => {
      const attempt = stage.store.read((tx) => {
        const live = tx.sessions.live('shop', ['s1'], stage.clock.nowMs());
        return tx.attempts.unfinishedOf(String(live?.connection_id))[0];
      });
      const handOff = {
        attempt_id: String(attempt?.attempt_id),
        delivery_id: deliveryId(stage),
        content: 'notice' as const,
      };
      return ringForHandOff(stage, { caller: bob, project: 'shop' }, listenerBell(stage), handOff, quiet);
    },
  },
  {
    name: 'cursor of the listener',
    arrange: async (stage) => {
      await stored(stage);
      await reconcile(stage, { caller: bob, project: 'shop' }, listenerBell(stage), quiet);
    },
    act: async (stage) => {
      const batch = nextBatch(stage, 's1');
      if (batch !== undefined) await commitBatch(stage, batch);
      return batch;
    },
  },
];

export const actions: readonly Action[] = [...sends, ...receipts, ...sessions, ...rings];
