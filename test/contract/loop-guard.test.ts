// What keeps two agents from waking each other for ever.

import { beforeEach, describe, expect, it } from 'vitest';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { type SendAnswer, send } from '../../src/mailbox/send.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { locksIn } from '../../src/store/lock.ts';
import {
  attach,
  difference,
  letter,
  ok,
  openScene,
  post,
  posted,
  read,
  refused,
  type Scene,
  sessionCaller,
} from './desk.ts';
import { fault } from './rung.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
});

const a1 = sessionCaller('a1', 'alice');
const b1 = sessionCaller('b1');

/** Bob acknowledges it. */
async function done(msg_id: string): Promise<void> {
  const messages = [{ sender: 'local', msg_id }];
  ok(await acknowledge(desk, { project: 'shop', messages }, b1));
}

/** What the notifier of b1 has rung for, when its longest gap has passed. */
async function rung(): Promise<unknown[]> {
  const ringing = { caller: b1, project: 'shop' };
  const { stop } = runNotifier(desk, locksIn(desk.directory), ringing, listenerBell(desk), fault);
  await desk.clock.advance(301_000);
  stop();
  return desk.rows('SELECT text FROM listener_row');
}

/** Alice and Bob answer each other in turn, until the last message has `hops` hops. */
async function pingPong(hops: number): Promise<SendAnswer> {
  let last = await posted(desk, { payload: 'question' });
  for (let hop = 1; hop <= hops; hop += 1) {
    const [from, to, caller] = hop % 2 === 1 ? ['bob', 'alice', b1] : ['alice', 'bob', a1];
    const over = { sender: from, recipient: to, payload: `answer ${hop}`, reply_to: last.message_id };
    last = ok(await post(desk, over, caller as typeof a1));
  }
  return last;
}

describe('the loop guard', () => {
  it('[MSG-142] counts hops by what a message answers, allows 31, and refuses the 32nd without storing it', async () => {
    const last = await pingPong(31);
    expect(last.hops).toBe(31);
    expect((await posted(desk)).hops).toBeUndefined();
    expect((await posted(desk, { reply_to: 'unknown' })).hops).toBeUndefined();
    const before = desk.counts();
    expect(refused(await post(desk, { payload: 'one more', reply_to: last.message_id }, a1))).toMatchObject({
      code: 'loop_limit',
      details: { hops: 32 },
    });
    expect(difference(before, desk.counts())).toEqual({});
  });

  it('[MSG-142] allows 30 answers of one session to one recipient in ten minutes, and says how long to wait', async () => {
    const { message_id } = await posted(desk, { sender: 'bob', recipient: 'alice' });
    const request = () => read(sendFields, letter({ payload: 'again', reply_to: message_id }));
    const first = request();
    ok(await send(desk, first, a1));
    await desk.clock.advance(60_000);
    for (let nth = 2; nth <= 30; nth += 1) ok(await send(desk, request(), a1));
    const before = desk.counts();
    expect(refused(await send(desk, request(), a1))).toMatchObject({
      code: 'rate_limited',
      details: { wait_ms: 540_000 },
    });
    expect(difference(before, desk.counts())).toEqual({});
    expect(ok(await send(desk, first, a1)).hops).toBe(1);
    ok(await send(desk, request(), sessionCaller('a2', 'alice')));
    ok(await post(desk, { payload: 'a question of its own' }, a1));
    ok(await post(desk, { payload: 'to another', recipient: 'carol', reply_to: message_id }, a1));
    await desk.clock.advance(539_999);
    expect(refused(await send(desk, request(), a1)).code).toBe('rate_limited');
    await desk.clock.advance(1);
    ok(await send(desk, request(), a1));
  });

  it('[MSG-142] counts the answers of a sender without a session by its label', async () => {
    const { message_id } = await posted(desk, { sender: 'bob', recipient: 'alice' });
    const again = (sender: string) => post(desk, { sender, payload: 'again', reply_to: message_id });
    for (let nth = 1; nth <= 30; nth += 1) ok(await again('a script'));
    const before = desk.counts();
    expect(refused(await again('a script')).code).toBe('rate_limited');
    expect(difference(before, desk.counts())).toEqual({});
    ok(await again('another script'));
  });

  it.each([
    'ok',
    'OK.',
    'Okay!',
    'ack',
    'Acknowledged',
    'thanks',
    'Thank you!',
    'got it',
    'noted.',
    'NO_REPLY',
    '+1',
    '👍',
    '👍🏽',
    '✅',
    '✔️',
    '  ',
  ])('[MSG-142] stores %j in reply, but wakes nobody for it, and says so', async (payload) => {
    const { message_id } = await posted(desk);
    await attach(desk, 'b1');
    const handed = desk.handed.length;
    const sent = ok(await post(desk, { payload, reply_to: message_id }));
    expect(sent.quieted).toBe('loop_guard');
    expect(desk.handed).toHaveLength(handed);
    const mail = ok(receive(desk, { project: 'shop' }, b1));
    expect(mail.messages.map((one) => one.message_id)).toContain(sent.message_id);
    expect(mail.progress_waiting).toBe(1);
    const exact = { payload, reply_to: message_id, recipient: 'b1', target_kind: 'session' };
    const told = ok(await post(desk, exact));
    expect(told).toMatchObject({ quieted: 'loop_guard' });
    expect(told).not.toHaveProperty('native_delivery');
    expect(refused(await post(desk, { ...exact, recipient: 'gone' })).code).toBe('recipient_unavailable');
    await done(message_id);
    expect(await rung()).toEqual([]);
  });

  it('[MSG-142] holds nothing that says more, is tagged, or answers nothing', async () => {
    const { message_id } = await posted(desk);
    for (const over of [
      { payload: 'ok, but why?', reply_to: message_id },
      { payload: 'ok', reply_to: message_id, status: 'result' },
      { payload: 'ok' },
    ])
      expect(await posted(desk, over)).not.toHaveProperty('quieted');
    expect(await rung()).not.toEqual([]);
  });
});

describe('a quiet message', () => {
  it('[MSG-143] wakes nobody whatever it says, and cannot be for an exact session', async () => {
    await attach(desk, 'b1');
    for (const over of [{}, { status: 'needs_input' }, { status: 'failed', task_id: 't' }]) {
      const sent = ok(await post(desk, { payload: 'is anybody there?', quiet: true, ...over }));
      expect(sent.quiet).toBe(true);
    }
    expect(desk.handed).toEqual([]);
    expect(await rung()).toEqual([]);
    expect(ok(receive(desk, { project: 'shop' }, b1)).progress_waiting).toBe(3);
    const before = desk.counts();
    const exact = { recipient: 'b1', target_kind: 'session', quiet: true };
    expect(refused(await post(desk, exact))).toMatchObject({
      code: 'invalid_request',
      details: { field: 'quiet' },
    });
    expect(difference(before, desk.counts())).toEqual({});
  });
});
