// A send that waits for its answer.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { type SendAnswer, send } from '../../src/mailbox/send.ts';
import type { Result } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { settle } from './clock.ts';
import {
  alice,
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

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** A send that waits; what it answered, once it did. */
function asking(over: object, caller = alice as Parameters<typeof send>[2]) {
  const state: { answer?: Result<SendAnswer> } = {};
  const request = read(sendFields, letter(over as Record<string, unknown>));
  void send(desk, request, caller).then((answer) => {
    state.answer = answer;
  });
  return state;
}

const sentId = () => String(desk.rows('SELECT message_id FROM message ORDER BY seq LIMIT 1')[0]?.message_id);

describe('a send that waits for a reply', () => {
  it('[MSG-144] names the first message that answers it and is for its sender, and takes nothing in', async () => {
    const state = asking({ reply_wait_ms: 30_000, idempotency_key: 'k' });
    await settle();
    const reply_to = sentId();
    await posted(desk, { sender: 'bob', recipient: 'alice', payload: 'unrelated' });
    await posted(desk, { sender: 'bob', recipient: 'carol', reply_to });
    await desk.clock.advance(1_000);
    expect(state.answer).toBeUndefined();
    const reply = await posted(desk, { sender: 'bob', recipient: 'alice', payload: 'yes', reply_to });
    await posted(desk, { sender: 'bob', recipient: 'alice', payload: 'and another', reply_to });
    await settle();
    const { message_id, project, recipient, target_kind } = reply;
    const first = { message_id, project, recipient, target_kind };
    expect(ok(state.answer as Result<SendAnswer>).reply).toEqual(first);
    expect((await posted(desk, { reply_wait_ms: 0, idempotency_key: 'k' })).reply).toEqual(first);
    expect(desk.clock.nowMs() - Date.parse(reply.created_at)).toBeLessThan(1_000);
    const mail = ok(receive(desk, { project: 'shop', recipient: 'alice' }, alice)).messages;
    expect(mail).toHaveLength(3);
    expect(JSON.stringify(state.answer)).not.toContain('yes');
  });

  it('[MSG-144] says what is known when the wait ends, not when it began', async () => {
    const state = asking({ reply_wait_ms: 5_000 });
    await settle();
    const messages = [{ sender: 'local', msg_id: sentId() }];
    ok(await acknowledge(desk, { project: 'shop', messages }, sessionCaller('s1')));
    await desk.clock.advance(5_000);
    expect(ok(state.answer as Result<SendAnswer>)).toMatchObject({
      reply: null,
      delivery_state: 'receiver_acknowledged',
    });
  });

  it('[MSG-144] knows a reply to the session it came from', async () => {
    const state = asking({ reply_wait_ms: 5_000 }, sessionCaller('a1', 'alice'));
    await settle();
    await post(desk, { sender: 'bob', recipient: 'a1', target_kind: 'session', reply_to: sentId() });
    await settle();
    expect(ok(state.answer as Result<SendAnswer>).reply).toMatchObject({
      recipient: 'a1',
      target_kind: 'session',
    });
  });

  it('[MSG-144] answers null after its time, having taken nothing back; 0 asks once', async () => {
    const state = asking({ reply_wait_ms: 2_000 });
    await desk.clock.advance(1_999);
    expect(state.answer).toBeUndefined();
    await desk.clock.advance(1);
    expect(ok(state.answer as Result<SendAnswer>).reply).toBeNull();
    expect(ok(receive(desk, { project: 'shop', recipient: 'bob' }, alice)).messages).toHaveLength(1);
    const at0 = ok(await post(desk, { reply_wait_ms: 0 }));
    expect(at0.reply).toBeNull();
    expect(await posted(desk)).not.toHaveProperty('reply');
    for (const reply_wait_ms of [-1, 30_001, 1.5, '5'])
      expect(refused(await post(desk, { reply_wait_ms })).details).toEqual({ field: 'reply_wait_ms' });
  });
});
