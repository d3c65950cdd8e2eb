// An answer that is too long for a host's connection would be lost with it: mail is given out in pages that fit.

import { beforeEach, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { history } from '../../src/mailbox/history.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { limits } from '../../src/protocol/limits.ts';
import { attach, ok, openScene, posted, type Scene, sessionCaller } from './desk.ts';

let desk: Scene;
const bob = sessionCaller('s1');
beforeEach(async () => {
  desk = await openScene();
  await attach(desk, 's1');
});

const receiving = (limit = 100) => ok(receive(desk, { project: 'shop', limit }, bob));
/** As long as a payload may be: 8 fit. */
const largest = 'x'.repeat(limits.payloadBytesMax - 2);

it('[INB-071] holds as many payloads as fit into 524_288 characters, and says how many remain', async () => {
  expect(limits.answerPayloadCharactersMax).toBe(524_288);
  const ids: string[] = [];
  for (let nth = 0; nth < 9; nth += 1) ids.push((await posted(desk, { payload: largest })).message_id);
  for (const rest of [ids, ids.slice(8), []]) {
    const { messages, remaining } = receiving();
    expect(messages.map(({ message_id }) => message_id)).toEqual(rest.slice(0, 8));
    expect(remaining).toBe(Math.max(rest.length - 8, 0));
    if (messages.length === 0) continue;
    const receipts = messages.map(({ receipt }) => receipt);
    ok(await acknowledge(desk, { project: 'shop', messages: receipts }, bob));
  }
  await posted(desk, { payload: 'short' });
  expect(receiving().messages.map(({ payload }) => payload)).toEqual(['short']);
});

it('[INB-084, INB-085, MSG-090] of a conversation ends with the newest; what did not fit is told and not consumed', async () => {
  await posted(desk, { payload: 'the oldest' });
  for (let nth = 0; nth < 8; nth += 1) {
    await desk.clock.advance(1);
    await posted(desk, { payload: largest });
  }
  const answer = ok(await history(desk, { project: 'shop', peer: 'alice', limit: 100, consume: true }, bob));
  expect(answer).toMatchObject({ consumed: 8, omitted: 1 });
  expect(answer.messages).toHaveLength(8);
  expect(receiving().messages.map(({ payload }) => payload)).toEqual(['the oldest']);
  expect(ok(await history(desk, { project: 'shop', peer: 'alice', limit: 1 }, bob))).not.toHaveProperty(
    'omitted',
  );
});
