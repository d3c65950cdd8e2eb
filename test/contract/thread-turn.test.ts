// Whether a turn of a managed thread runs, by what the server tells and answers, in whatever order.

import { expect, it } from 'vitest';
import { ThreadTurn } from '../../src/hosts/codex/managed.ts';

it('is over however late its beginning is answered, and whichever other turns ended meanwhile', () => {
  const turn = new ThreadTurn(() => 'thread');
  const told = (method: string, id: string, threadId = 'thread') =>
    turn.notified(method, { threadId, turn: { id } });
  for (const id of ['one', 'two', 'three']) {
    told('turn/started', id);
    expect(turn.running).toBe(id);
    told('turn/completed', id, 'another');
    expect(turn.running).toBe(id);
    told('turn/completed', id);
    expect(turn.running).toBeUndefined();
  }
  for (const id of ['one', 'two', 'three']) {
    turn.began(id);
    expect([id, turn.running]).toEqual([id, undefined]);
  }
  turn.began('four');
  expect(turn.running).toBe('four');
  told('turn/completed', 'three');
  expect(turn.running).toBe('four');
});
