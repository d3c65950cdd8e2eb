// Which commits touch, and that each does so after its commit.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { cancelTask } from '../../src/mailbox/cancel.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { recordSessionStart } from '../../src/sessions/alias.ts';
import { disconnect } from '../../src/sessions/disconnect.ts';
import { discover } from '../../src/sessions/discover.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { heartbeat } from '../../src/sessions/heartbeat.ts';
import type { Registered } from '../../src/sessions/register.ts';
import { attach, difference, ok, openScene, posted, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
let held: Registered;
let mail: { message_id: string; delivery_id: string };
beforeEach(async () => {
  desk = await openScene();
  held = await attach(desk, 's1');
  mail = await posted(desk, { task_id: 't', status: 'update' });
  desk.onNotify = () => ({ delivered: false });
});

const bob = sessionCaller('s1');
const project = 'shop';
const inbox = { project, recipient: 'bob' };

/** The host of s1 runs another id after `/clear`. */
async function cleared(): Promise<void> {
  const host = { pid: 7, start_time: '1' };
  await recordSessionStart(desk, host, { session_id: 's1', source: 'startup' });
  await recordSessionStart(desk, host, { session_id: 's1b', source: 'clear' });
}

/** What the store showed to others that was new, at each touch of the act. */
async function seenAtTouches(act: () => unknown): Promise<Record<string, number>[]> {
  const before = desk.counts();
  const seen: Record<string, number>[] = [];
  const stop = desk.wake.watch(() => seen.push(difference(before, desk.counts())));
  await act();
  stop();
  return seen;
}

describe('a commit', () => {
  const touching: [string, () => unknown, string][] = [
    ['a message', () => posted(desk), 'message'],
    ['a newer one of its task', () => posted(desk, { task_id: 't', status: 'result' }), 'message'],
    [
      'a task that is cancelled',
      () => cancelTask(desk, { ...inbox, task_id: 't' }, { ...bob, principal: 'alice' }),
      'message',
    ],
    [
      'an intake',
      () =>
        intake(desk, { ...inbox, message_id: mail.message_id, idempotency_key: 'k', state: 'fetched' }, bob),
      'receipt',
    ],
    [
      'a receipt given back',
      () => acknowledge(desk, { project, messages: [{ sender: 'local', msg_id: mail.message_id }] }, bob),
      'receipt',
    ],
    [
      'a conversation that is consumed',
      () => history(desk, { project, peer: 'alice', consume: true }, bob),
      'receipt',
    ],
    [
      'a hand-off',
      async () => dispatch(desk.board, project, (await posted(desk)).delivery_id),
      'host_accept',
    ],
    ['a link after a clear', cleared, 'alias'],
    ['a registration', () => attach(desk, 's2'), 'connection'],
    ['its end', () => disconnect(desk.board, held.connection_id, 'socket_closed'), 'presence'],
  ];

  it.each(touching)('[SES-160] of %s touches, once it can be seen', async (_, act, table) => {
    const seen = await seenAtTouches(act);
    expect(seen).not.toEqual([]);
    expect(seen.at(-1)?.[table]).toBeGreaterThan(0);
    for (const grown of seen) expect(grown).not.toEqual({});
  });

  it('[SES-160] that only renews a lease touches nothing, and neither does reading', async () => {
    const { connection_id, generation } = held;
    expect(
      await seenAtTouches(async () => {
        ok(await heartbeat(desk.board, { connection_id, generation, work_summary: 'sanding' }));
        ok(receive(desk, { project }, bob));
        ok(await history(desk, { project, peer: 'alice' }, bob));
        discover(desk.board, { project });
      }),
    ).toEqual([]);
  });
});
