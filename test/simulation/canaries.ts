// A planted fault for each checker: what the product must never do, done by a wrapper around its ports.

import type { Tx } from '../../src/ports/store.ts';
import { type Altered, bentStore, unkept } from './bent.ts';
import type { Tamper } from './ports.ts';
import type { ProcessKind } from './process.ts';
import type { Canary } from './run.ts';
import type { World } from './world.ts';

const altered =
  (kinds: readonly ProcessKind[], change: (tx: Tx, world: World) => Altered): Tamper =>
  (store, process, world) =>
    kinds.includes(process.kind) ? bentStore(store, (tx) => change(tx, world)) : store;

const answersBeforeItCommits: Tamper = (store, process, world) => {
  if (process.kind !== 'command') return store;
  // What was not kept cannot be fallen back from.
  const within =
    <T>(work: (tx: Tx) => T) =>
    (tx: Tx): T =>
      work({
        ...tx,
        fallbacks: {
          ...tx.fallbacks,
          insert: (row) => {
            if (tx.messages.byDelivery(row.refused_delivery_id) !== undefined) tx.fallbacks.insert(row);
          },
        },
      });
  return {
    ...store,
    write: (work) => (world.dice.chance(0.1) ? unkept(store, within(work)) : store.write(within(work))),
  };
};

const everyKind: readonly ProcessKind[] = ['router', 'server', 'listener', 'hook', 'command'];

const drops: Tamper = altered(everyKind, (tx) => ({
  waiting: { list: (inbox, count) => tx.waiting.list(inbox, count).slice(0, 2) },
}));

const takesItForEnded: Tamper = altered(['router'], () => ({
  notices: { newestHolding: () => undefined },
}));

const countsDown: Tamper = altered(['router'], (tx) => ({
  sessions: { connect: (row) => tx.sessions.connect({ ...row, generation: 1_000 - row.generation }) },
}));

const anySibling: Tamper = altered(['router'], (tx) => ({
  sessions: {
    live: (project, ids, nowMs) =>
      tx.sessions.liveOfPrincipal(project, 'bob', nowMs) ??
      tx.sessions.liveOfPrincipal(project, 'carol', nowMs) ??
      tx.sessions.live(project, ids, nowMs),
  },
}));

const finishesAgain: Tamper = altered(['router'], (_, { disk }) => ({
  attempts: {
    unfinishedOf: (connectionId) =>
      disk.all('SELECT * FROM attempt WHERE connection_id = ?', connectionId) as never,
    finish: (attemptId, state, _, at) => {
      disk.run('UPDATE attempt SET state = ?, finished_at = ? WHERE attempt_id = ?', state, at, attemptId);
    },
  },
}));

const slips: Tamper = altered(['command'], (tx, { dice }) => ({
  messages: {
    insert: (row) => {
      if (dice.chance(0.1)) throw new TypeError('a slip');
      tx.messages.insert(row);
    },
  },
}));

const leavesOpen: Tamper = altered(['router'], () => ({
  sessions: { open: () => [], allLive: () => [] },
}));

const alwaysSoon: Tamper = altered(['server'], (tx) => ({
  notices: { open: (row) => tx.notices.open({ ...row, step: 0, expires_at_ms: row.rung_at_ms + 30_000 }) },
}));

const ringsForWhatIsOver: Tamper = altered(['server'], (tx) => ({
  attempts: {
    byId: (id) => {
      const attempt = tx.attempts.byId(id);
      return attempt && { ...attempt, state: 'started' };
    },
  },
  sessions: {
    connection: (id) => {
      const connection = tx.sessions.connection(id);
      const lease_expires_at_ms = Number.POSITIVE_INFINITY;
      return connection && { ...connection, disconnect_reason: null, lease_expires_at_ms };
    },
  },
}));

const saysAcknowledged: Tamper = altered(['command'], () => ({ receipts: { has: () => true } }));

const passesAll: Tamper = altered(['listener'], (tx) => ({
  listener: {
    rows: (ids, position, count) =>
      tx.listener.rows(ids, position, count).map((row) => ({ ...row, waiting: false })),
  },
}));

const endsTasksWithQuestions: Tamper = altered(['command', 'server'], (tx) => ({
  tasks: {
    supersede: (message, sessions) =>
      tx.tasks.supersede(
        message.status === 'needs_input' ? { ...message, status: 'result' } : message,
        sessions,
      ),
  },
}));

const supersedesNothing: Tamper = altered(['command'], () => ({ tasks: { supersede: () => {} } }));

const takesExpiryForEnd: Tamper = altered(everyKind, (tx) => ({
  waiting: {
    list: (inbox, count) =>
      tx.waiting.list(inbox, count).filter(({ message }) => message.expires_at === undefined),
  },
}));

const wakesForProgress: Tamper = altered(['router'], (tx) => ({
  messages: {
    byDelivery: (id) => {
      const stored = tx.messages.byDelivery(id);
      return stored && { ...stored, attention: true };
    },
  },
}));

/** By the checker that must catch it, or under a name of its own. */
export const canaries: Readonly<Record<string, Canary>> = {
  'acknowledged is never lost': { hooks: { tamper: answersBeforeItCommits } },
  'one answer to what waits': { hooks: { tamper: drops } },
  'no receipt without its event': {
    hooks: {
      ring: ({ attempt_id, notification_id }) =>
        attempt_id === undefined
          ? undefined
          : { outcome: 'accepted', content: 'notice', receipt: { notification_id } },
    },
  },
  'one reservation a session': { hooks: { tamper: takesItForEnded } },
  'one hand-off a delivery and generation': {
    steps: 30_000,
    start: (world) => {
      // A host that has taken a delivery is not asked for it again.
      world.faults = { ...world.faults, badRing: 0.6 };
      world.onWrite = (text) => (text.includes('"type":"deliver"') ? [text, text] : [text]);
    },
  },
  'generations only rise': { hooks: { tamper: countsDown } },
  'connections end, and what runs on them': { hooks: { tamper: leavesOpen } },
  'reminders follow the schedule': { hooks: { tamper: alwaysSoon } },
  'the cursor covers what was printed': { hooks: { tamper: passesAll } },
  'no ring without its cause': {
    hooks: { tamper: ringsForWhatIsOver, mood: 'late' },
    start: (world) => {
      world.faults = { ...world.faults, badRing: 0.7 };
    },
  },
  'the sender is told the truth': { hooks: { tamper: saysAcknowledged } },
  'no mail to another inbox': { hooks: { tamper: anySibling } },
  'finished attempts never change': { hooks: { tamper: finishesAgain } },
  'what waits is rung': {
    steps: 4_000,
    hooks: {
      ring: ({ attempt_id }) =>
        attempt_id === undefined ? { outcome: 'accepted', content: 'notice', receipt: {} } : undefined,
    },
  },
  'no defect is thrown': { hooks: { tamper: slips } },
  'a question ends its task': {
    caughtBy: 'acknowledged is never lost',
    steps: 90_000,
    hooks: { tamper: endsTasksWithQuestions },
  },
  'progress is never overtaken': {
    caughtBy: 'acknowledged is never lost',
    hooks: { tamper: supersedesNothing },
  },
  'what is to expire is not shown': {
    caughtBy: 'one answer to what waits',
    hooks: { tamper: takesExpiryForEnd },
  },
  'progress is handed over': {
    caughtBy: 'one hand-off a delivery and generation',
    hooks: { tamper: wakesForProgress },
  },
};
