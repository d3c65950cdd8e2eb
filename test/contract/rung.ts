// Bob's session s1 as something that rings: its process takes hand-offs with the listener bell and runs a notifier.

import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import type { Bell } from '../../src/ports/bell.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import { noonMs } from './clock.ts';
import { atEnd, ok, openScene, type Scene, sessionCaller } from './desk.ts';

/** What must not happen in a scene. */
export const fault = (error: unknown): never => {
  throw error;
};

export const startMs = noonMs;
export const ringing = { caller: sessionCaller('s1'), project: 'shop' };

export interface Rung {
  desk: Scene;
  bell: Bell;
  /** Runs the notifier of s1; a fault of it fails the test at its end. */
  startNotifier(): void;
  /** Seconds since the scene began at which the listener got a row. */
  rungAt(): number[];
  reservations(): Record<string, unknown>[];
  /** Acknowledges as s1 does. */
  done(...messageIds: string[]): Promise<void>;
}

export async function openRung(): Promise<Rung> {
  const desk = await openScene();
  const bell = listenerBell(desk);
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
  desk.host = async (handOff) => {
    const outcome = await ringForHandOff(desk, ringing, bell, handOff, fault);
    return outcome.outcome === 'accepted' ? outcome : { outcome: 'timeout' };
  };
  return {
    desk,
    bell,
    startNotifier: () => {
      const faults: unknown[] = [];
      const onFault = (error: unknown) => faults.push(error);
      const notifier = runNotifier(desk, locksIn(desk.directory), ringing, bell, onFault);
      atEnd(() => {
        notifier.stop();
        if (faults.length > 0) throw faults[0];
      });
    },
    rungAt: () =>
      desk
        .rows('SELECT created_at FROM listener_row ORDER BY seq')
        .map((row) => (Date.parse(String(row.created_at)) - startMs) / 1_000),
    reservations: () =>
      desk.rows(
        'SELECT notification_id, state, step, rung_at_ms, expires_at_ms FROM reservation ORDER BY seq',
      ),
    done: async (...ids) => {
      const messages = ids.map((msg_id) => ({ sender: 'local', msg_id }));
      ok(await acknowledge(desk, { project: 'shop', messages }, ringing.caller));
    },
  };
}
