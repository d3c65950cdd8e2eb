// Rows: what a send inserts, and which ids name one session.

import { describe, expect, it } from 'vitest';
import { difference, openScene, posted } from './desk.ts';

describe('a send', () => {
  it('[MSG-019] inserts one message, one delivery, one event without payload and one idempotency record', async () => {
    const desk = await openScene();
    const before = desk.counts();
    const sent = await posted(desk, {
      payload: 'a secret body',
      correlation_id: 'c',
      status: 'result',
      task_id: 't',
    });
    expect(difference(before, desk.counts())).toEqual({ message: 1, delivery: 1, event: 1, idempotency: 1 });
    const { message_id, delivery_id, event_id, created_at } = sent;
    const ids = { message_id, delivery_id, project: 'shop', recipient: 'bob', target_kind: 'principal' };
    expect(desk.rows('SELECT * FROM event')).toEqual([
      { seq: 1, event_id, event_kind: 'message_available', ...ids, created_at, receipt_id: null },
    ]);
    expect(created_at).toBe('2026-03-01T12:00:00.000Z');
    expect(JSON.stringify(desk.rows('SELECT * FROM event'))).not.toContain('secret');
  });
});

describe('the ids of one session', () => {
  async function linked(...links: [string, string][]) {
    const desk = await openScene();
    for (const [newId, oldId] of links) await desk.store.write((tx) => tx.identity.link(newId, oldId));
    return (id: string) => desk.store.read((tx) => tx.identity.chain(id));
  }

  it('are the id itself where nothing is linked', async () => {
    const chain = await linked(['b', 'a']);
    expect(chain('z')).toEqual(['z']);
    expect(chain('')).toEqual(['']);
  });

  it('are all of its chain, the first one first, from whichever end one asks', async () => {
    const chain = await linked(['b', 'a'], ['c', 'b'], ['d', 'c']);
    for (const id of ['a', 'b', 'c', 'd']) expect(chain(id)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('may fork, and are linked in any order', async () => {
    const chain = await linked(['d', 'b'], ['c', 'b'], ['b', 'a']);
    for (const id of ['a', 'b', 'c', 'd']) {
      expect(chain(id)[0]).toBe('a');
      expect([...chain(id)].sort()).toEqual(['a', 'b', 'c', 'd']);
      expect(chain(id)).toEqual(chain('a'));
    }
  });

  it('are found in a cycle too, with one first id for all', async () => {
    const chain = await linked(['b', 'a'], ['c', 'b'], ['a', 'c'], ['d', 'a']);
    for (const id of ['a', 'b', 'c', 'd']) {
      expect([...chain(id)].sort()).toEqual(['a', 'b', 'c', 'd']);
      expect(chain(id)[0]).toBe(chain('a')[0]);
    }
  });

  it('never include those of another session', async () => {
    const chain = await linked(['b', 'a'], ['y', 'x'], ['a', 'a']);
    expect(chain('b')).toEqual(['a', 'b']);
    expect(chain('y')).toEqual(['x', 'y']);
  });

  it('are those of both where an id that has a past is linked to another: a cleared session, pinned later', async () => {
    const chain = await linked(['cleared', 'own'], ['cleared', 'pinned']);
    for (const id of ['own', 'cleared', 'pinned'])
      expect([chain(id)[0], [...chain(id)].sort()]).toEqual(['pinned', ['cleared', 'own', 'pinned']]);
  });

  it('may be very many', async () => {
    const desk = await openScene();
    await desk.store.write((tx) => {
      for (let n = 1; n < 1_500; n += 1) tx.identity.link(`s${n}`, `s${n - 1}`);
    });
    const chain = (id: string) => desk.store.read((tx) => tx.identity.chain(id));
    expect(chain('s1499')[0]).toBe('s0');
    expect(chain('s700')).toHaveLength(1_500);
  });
});
