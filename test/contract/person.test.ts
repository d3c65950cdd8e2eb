// Who began a turn: a person, whose wish starts a chain of messages, or a bell, whose mail is what caused the next message.

import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { openReservation } from '../../src/mailbox/reserve.ts';
import { isHumanPrompt } from '../../src/protocol/human-prompt.ts';
import { renderNotice, renewalText } from '../../src/protocol/notices.ts';
import { renderPairingNotice } from '../../src/protocol/pairing-notice.ts';
import { attach, ok, openScene, post, posted, type Scene, sessionCaller } from './desk.ts';

const caller = sessionCaller('s1');
let desk: Scene;
let promptMs: number | undefined;

beforeEach(async () => {
  desk = await openScene();
  promptMs = undefined;
  desk.lastPromptMs = () => promptMs;
  await attach(desk, 's1');
});

/** A bell rings for what waits, and the session takes all of it in. */
async function wokenAndRead(): Promise<void> {
  await desk.clock.advance(1_000);
  await desk.store.write((tx) => {
    const inbox = { project: 'shop', principals: ['bob'], targets: ['s1'], intended: ['s1'], named: false };
    const id = openReservation(
      tx,
      desk,
      's1',
      tx.waiting.worthy(inbox).map(({ delivery_id }) => delivery_id),
    );
    tx.notices.markRung(id as string);
    tx.notices.setState(id as string, 'inbox_queued');
  });
  await desk.clock.advance(1_000);
  const { messages } = ok(receive(desk, { project: 'shop' }, caller));
  ok(await acknowledge(desk, { project: 'shop', messages: messages.map(({ receipt }) => receipt) }, caller));
}

const said = async (over: object = {}) =>
  ok(await post(desk, { sender: 'bob', recipient: 'carol', ...over }, caller));

describe('a message that a session sends', () => {
  it('is one hop from the mail that was taken in during a turn that a bell started, whatever it answers', async () => {
    promptMs = desk.clock.nowMs();
    const first = await posted(desk);
    await wokenAndRead();
    const caused = await said({ payload: 'the same in other words' });
    expect(caused.hops).toBe(1);
    const answer = await said({ reply_to: first.message_id });
    expect(answer.hops).toBe(1);
    const roots = desk.rows('SELECT DISTINCT root_id FROM message WHERE hops > 0');
    expect(roots).toHaveLength(1);
  });

  it('[PEER-081] stands at the start in a turn that a person started, whatever it answers', async () => {
    const first = await posted(desk);
    await wokenAndRead();
    await desk.clock.advance(1_000);
    promptMs = desk.clock.nowMs();
    expect((await said({ reply_to: first.message_id })).hops).toBeUndefined();
    expect((await said()).hops).toBeUndefined();
    // The next bell begins another turn.
    await posted(desk);
    await wokenAndRead();
    expect((await said()).hops).toBe(1);
  });

  it('[PEER-081] counts only what it answers where no hook notes prompts', async () => {
    const first = await posted(desk);
    await wokenAndRead();
    expect((await said()).hops).toBeUndefined();
    expect((await said({ reply_to: first.message_id })).hops).toBe(1);
  });
});

describe('a prompt', () => {
  it.each([
    ['a rewake', '<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated event'],
    ['a rewake of an older host', '<task-notification>\n<summary>Stop hook feedback</summary>'],
    ['a channel message', '<channel source="plugin:postbell:postbell" from="alice">\nhello\n</channel>'],
    [
      'a message of another session',
      'Another Claude session sent a message:\n<cross-session-message from="uds:x">',
    ],
    ['a background task', '<task-notification>\n<task-id>b1</task-id>'],
    ['a notice', renderNotice({ notification_id: 'a1b2c3d4e5f6', unread: 1, progress: 0 })],
    ['a pairing notice', renderPairingNotice({ requests: 1, conflicts: [] })],
    ['a renewal', renewalText],
    ['nothing', '  \n'],
  ])('that is %s is no person\u2019s', (_, text) => {
    expect(isHumanPrompt(text)).toBe(false);
    expect(isHumanPrompt(`\n  ${text}`)).toBe(false);
  });

  it('that mentions such a wrapper further on is one', () => {
    for (const text of [
      'please fix the bug',
      'why did <channel source="x"> come twice?',
      '[Postbell] is down?',
    ])
      expect(isHumanPrompt(text)).toBe(true);
  });
});
