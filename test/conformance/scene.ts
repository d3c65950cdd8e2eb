// Bob's session s1 behind any bell: its process takes hand-offs and runs the notifier, the router is the real one's use
// cases, and its model reads what it is told of.

import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { failed } from '../../src/mailbox/failed.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import type { HostOutcome } from '../../src/sessions/switchboard.ts';
import { locksIn } from '../../src/store/lock.ts';
import { noonMs } from '../contract/clock.ts';
import { atEnd, attach, ok, openScene, type Scene, sessionCaller } from '../contract/desk.ts';
import type { Adapter, MakeAdapter } from './adapters.ts';

export const ringing = { caller: sessionCaller('s1'), project: 'shop' };
export const toSession = { target_kind: 'session', recipient: 's1' };

export interface Belled extends Adapter {
  desk: Scene;
  /** What the router does with a committed delivery. */
  notify: Scene['onNotify'];
  /** What went wrong beside the rings. */
  faults: unknown[];
  /** Runs the notifier of s1; the returned function kills it. */
  startNotifier(): () => void;
  attach(): Promise<unknown>;
  /** Message ids that the model was given, in order. */
  read: string[];
  /** Seconds since the scene began at which it was rung. */
  rungAt(): number[];
  /** Ids that wait for s1. */
  waiting(notificationId?: string): string[];
  done(...ids: string[]): Promise<void>;
  stateOf(messageId: string, recipient?: string): string;
  failures(): Promise<unknown[]>;
}

/** What must not happen in a scene. */
export const fault = (error: unknown): never => {
  throw error;
};

/** @param of the scene of an earlier process of this session */
export async function openBelled(make: MakeAdapter, of?: Scene): Promise<Belled> {
  const desk = of ?? (await openScene());
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  const read: string[] = [];
  const waiting = (notification_id?: string) =>
    ok(
      receive(
        desk,
        { project: 'shop', ...(notification_id !== undefined && { notification_id }) },
        ringing.caller,
      ),
    ).messages.map((message) => message.message_id);
  const adapter = make(desk, (text) => {
    const whole = /"msg_id":"([^"]+)"/.exec(text)?.[1];
    for (const id of whole === undefined ? waiting() : [whole]) if (!read.includes(id)) read.push(id);
  });
  const notify: Scene['onNotify'] = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
  desk.onNotify = notify;
  desk.host = async (handOff) => {
    const taking = ringForHandOff(desk, ringing, adapter.bell, handOff, onFault);
    const answer = taking.then(answerOf, (error: unknown): HostOutcome => {
      onFault(error);
      return { outcome: 'rejected', failure_code: 'adapter_error' };
    });
    const gaveUp = new Promise<HostOutcome>((resolve) =>
      desk.clock.after(desk.board.hostOutcomeWaitMs, () => resolve({ outcome: 'timeout' })),
    );
    return Promise.race([answer, gaveUp]);
  };
  const description = adapter.bell.describe();
  return {
    ...adapter,
    desk,
    notify,
    faults,
    read,
    waiting,
    startNotifier: () => {
      const { stop } = runNotifier(desk, locksIn(desk.directory), ringing, adapter.bell, onFault);
      atEnd(stop);
      return stop;
    },
    attach: () =>
      attach(desk, 's1', {
        bell: description.bell,
        adapter_kind: description.adapterKind,
        lease_ms: 300_000,
      }),
    rungAt: () => adapter.rings().map(({ at }) => (at - noonMs) / 1_000),
    done: async (...ids) => {
      const messages = ids.map((msg_id) => ({ sender: 'local', msg_id }));
      ok(await acknowledge(desk, { project: 'shop', messages }, ringing.caller));
    },
    stateOf: (message_id, recipient = 'bob') =>
      ok(receipts(desk, { project: 'shop', recipient, message_id })).delivery_state,
    failures: async () => {
      const answer = ok(await failed(desk, { action: 'list' }, ringing.caller));
      return 'failed' in answer ? answer.failed : [];
    },
  };
}

function answerOf(outcome: Awaited<ReturnType<typeof ringForHandOff>>): HostOutcome {
  if (outcome.outcome === 'accepted') return outcome;
  if (outcome.outcome === 'rejected') return { outcome: 'rejected', failure_code: outcome.code };
  return { outcome: 'timeout' };
}
