// After /clear a session that nobody named has two ids, and a name made of each.

import { beforeEach, describe, expect, it } from 'vitest';
import { receive } from '../../src/mailbox/receive.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { attach, ok, openScene, posted, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
  desk.onNotify = ({ project, delivery_id }) => dispatch(desk.board, project, delivery_id);
  await attach(desk, 'one', { principal_id: 'claude-session-one' });
  await desk.store.write((tx) => tx.identity.link('two', 'one'));
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
