// After /clear a session that nobody named has two ids, and a name made of each.

import { beforeEach, describe, expect, it } from 'vitest';
import { receive } from '../../src/mailbox/receive.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { alice, attach, ok, openScene, post, posted, refused, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
  await attach(desk, 'one', { principal_id: 'claude-session-one' });
  await desk.store.write((tx) => tx.identity.link('two', 'one'));
});

describe('what a session sent before and after', () => {
  const one = sessionCaller('one', 'alice');
  const two = sessionCaller('two', 'alice');
  const waiting = () =>
    ok(receive(desk, { project: 'shop', recipient: 'bob' }, alice)).messages.map(({ payload }) => payload);
  const update = { task_id: 't', status: 'update' };

  it('[MSG-126, MSG-127] is of one task: the end of it, or newer progress, ends the older progress', async () => {
    ok(await post(desk, { ...update, payload: 'u1' }, one));
    ok(await post(desk, { ...update, payload: 'u2' }, two));
    expect(waiting()).toEqual(['u2']);
    ok(await post(desk, { task_id: 't', status: 'result', payload: 'the end' }, one));
    expect(waiting()).toEqual(['the end']);
    ok(await post(desk, { ...update, payload: 'late' }, two));
    ok(await post(desk, { ...update, payload: 'of another' }, sessionCaller('three', 'alice')));
    expect(waiting()).toEqual(['the end', 'of another']);
  });

  it('[MSG-126] has one newest update, also where both ids had one before they were linked', async () => {
    const three = sessionCaller('three', 'alice');
    const four = sessionCaller('four', 'alice');
    ok(await post(desk, { ...update, payload: 'of three' }, three));
    await desk.clock.advance(5_000);
    ok(await post(desk, { ...update, payload: 'of four' }, four));
    expect(waiting()).toEqual(['of three', 'of four']);
    await desk.store.write((tx) => tx.identity.link('four', 'three'));
    desk.clock.jump(-2_000);
    ok(await post(desk, { ...update, payload: 'by a clock set back' }, four));
    expect(waiting()).toEqual(['of four']);
  });

  it('[MSG-142] counts as the answers of one session', async () => {
    const { message_id } = await posted(desk, { sender: 'bob', recipient: 'alice' });
    const again = (caller: typeof one) => post(desk, { payload: 'again', reply_to: message_id }, caller);
    for (let nth = 1; nth <= 30; nth += 1) ok(await again(nth % 2 === 0 ? one : two));
    for (const caller of [one, two]) expect(refused(await again(caller)).code).toBe('rate_limited');
    ok(await again(sessionCaller('three', 'alice')));
  });
});

describe('mail to a session-scoped name', () => {
  it.each(['claude-session-one', 'claude-session-two'])('%s reaches the one session', async (recipient) => {
    const sent = await posted(desk, { recipient });
    expect(sent).toMatchObject({ recipient_presence: 'live' });
    expect(desk.handed.map(({ session_id }) => session_id)).toEqual(['one']);
    for (const id of ['one', 'two']) {
      const { messages } = ok(receive(desk, { project: 'shop' }, sessionCaller(id, `claude-session-${id}`)));
      expect(messages.map(({ message_id }) => message_id)).toEqual([sent.message_id]);
    }
  });

  it('of another session reaches nobody, and so does another kind of name', async () => {
    for (const recipient of ['claude-session-three', 'session-two', 'two']) {
      expect(await posted(desk, { recipient })).toMatchObject({ recipient_presence: 'unknown' });
      expect(desk.handed).toEqual([]);
    }
  });

  it('does not move a declared name: its twin after a clear is nobody', async () => {
    await attach(desk, 'named', { principal_id: 'reviewer' });
    await desk.store.write((tx) => tx.identity.link('renamed', 'named'));
    expect(await posted(desk, { recipient: 'claude-session-renamed' })).toMatchObject({
      recipient_presence: 'unknown',
    });
    expect(desk.handed).toEqual([]);
  });
});
