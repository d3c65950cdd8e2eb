// Two sessions of one principal, each with a reservation of its own over the same mail.

import { beforeEach, describe, expect, it } from 'vitest';
import { reconcile, ringForHandOff } from '../../src/mailbox/ring.ts';
import type { Bell } from '../../src/ports/bell.ts';
import { settle } from './clock.ts';
import { attach, posted, type Scene, sessionCaller } from './desk.ts';
import { fault, openRung, ringing } from './rung.ts';

let desk: Scene;
let bell: Bell;
beforeEach(async () => {
  ({ desk, bell } = await openRung());
});

/** The notifier of s2, which has no connection and so leaves nothing to the router. */
const siblingRings = (with_: Bell) =>
  reconcile(desk, { caller: sessionCaller('s2'), project: 'shop' }, with_, fault);
const reservationOf = (root: string) =>
  desk.rows('SELECT notification_id, state FROM reservation WHERE session_root = ? ORDER BY seq', root);

describe('a hand-off to one of two sessions', () => {
  it('is accepted on a row of its own session, though the other was rung for the same mail meanwhile', async () => {
    await attach(desk, 's1');
    desk.host = async (handOff) => {
      await siblingRings(bell);
      const outcome = await ringForHandOff(desk, ringing, bell, handOff, fault);
      return outcome.outcome === 'accepted' ? outcome : { outcome: 'timeout' };
    };
    const answer = await posted(desk);
    await settle();
    const [own] = reservationOf('s1');
    const accepted = desk
      .rows('SELECT receipt FROM host_accept')
      .map((row) => JSON.parse(String(row.receipt)));
    expect(accepted).toEqual([{ notification_id: own?.notification_id, state: 'inbox_queued' }]);
    expect(answer.native_delivery?.receipt).toEqual(accepted[0]);
    const rows = desk.rows('SELECT session_id, notification_id FROM listener_row ORDER BY session_id');
    expect(rows).toEqual([
      { session_id: 's1', notification_id: own?.notification_id },
      { session_id: 's2', notification_id: reservationOf('s2')[0]?.notification_id },
    ]);
  });

  it('fails for that session alone: the other goes on ringing', async () => {
    await attach(desk, 's1');
    desk.host = async () => {
      void siblingRings({ ...bell, ring: () => new Promise(() => {}) });
      await settle();
      return { outcome: 'rejected', failure_code: 'adapter_rejected' };
    };
    await posted(desk);
    await settle();
    expect(reservationOf('s1')).toMatchObject([{ state: 'delivery_failed' }]);
    expect(reservationOf('s2')).toMatchObject([{ state: 'preparing' }]);
  });
});
