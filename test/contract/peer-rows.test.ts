// What the store holds of this place, of peers' devices, and of what the gate refused.

import { describe, expect, it } from 'vitest';
import { openScene } from './desk.ts';

const key = 'A'.repeat(43);

describe('the place of a data directory', () => {
  it('is none before it is set; what is retired stays until it was purged', async () => {
    const { store } = await openScene();
    expect(store.read((tx) => tx.places.get())).toBeUndefined();
    const first = { device: 'a'.repeat(32), door: 'b'.repeat(32) };
    await store.write((tx) => tx.places.set(first));
    expect(store.read((tx) => tx.places.get())).toEqual(first);
    await store.write((tx) => {
      tx.places.set({ ...first, door: 'c'.repeat(32) });
      tx.places.retire(`${key}.${first.door}`, '2026-03-01T12:00:00.000Z');
      tx.places.retire(`${key}.${first.door}`, '2026-03-01T12:00:01.000Z');
    });
    expect(store.read((tx) => [tx.places.get()?.door, tx.places.retired()])).toEqual([
      'c'.repeat(32),
      [`${key}.${first.door}`],
    ]);
    await store.write((tx) => tx.places.purged(`${key}.${first.door}`));
    expect(store.read((tx) => tx.places.retired())).toEqual([]);
  });
});

describe('a device of a peer', () => {
  const device = 'd'.repeat(32);
  const card = {
    session_id: 's1',
    principal: 'bob',
    project: 'shop',
    host_kind: 'claude',
    directory: 'shop',
    git: 'shop',
    work_summary: '',
    bell: 'listener',
    generation: 1,
  };

  it('is known from its first record on, and keeps its route until another one came', async () => {
    const { store } = await openScene();
    const of = { peer_key: key, device };
    await store.write((tx) => tx.devices.heard({ ...of, heard_ms: 1 }));
    expect(store.read((tx) => tx.devices.get(key, device))).toEqual({
      ...of,
      relays: [],
      suites: [1],
      heard_ms: 1,
      looked_ms: null,
      age_ms: null,
      gone: false,
      card_ms: null,
      sessions: [],
    });
    const route = { relays: ['https://relay.example'], suites: [1, 2] };
    await store.write((tx) => {
      tx.devices.heard({ ...of, heard_ms: 2, route });
      tx.devices.heard({ ...of, heard_ms: 3 });
      tx.devices.looked({ ...of, looked_ms: 4, age_ms: 5, gone: true });
      tx.devices.card({ ...of, card_ms: 6, sessions: [card] });
    });
    expect(store.read((tx) => tx.devices.get(key, device))).toEqual({
      ...of,
      ...route,
      heard_ms: 3,
      looked_ms: 4,
      age_ms: 5,
      gone: true,
      card_ms: 6,
      sessions: [card],
    });
  });

  it('is listed by the time of its last record, and is forgotten with its peer', async () => {
    const { store } = await openScene();
    const other = 'e'.repeat(32);
    await store.write((tx) => {
      tx.devices.heard({ peer_key: key, device, heard_ms: 1 });
      tx.devices.heard({ peer_key: key, device: other, heard_ms: 2 });
      tx.devices.heard({ peer_key: 'B'.repeat(43), device, heard_ms: 3 });
    });
    expect(store.read((tx) => tx.devices.of(key).map((row) => row.device))).toEqual([other, device]);
    await store.write((tx) => tx.devices.forget(key));
    expect(store.read((tx) => [tx.devices.of(key).length, tx.devices.of('B'.repeat(43)).length])).toEqual([
      0, 1,
    ]);
  });
});

describe('what the gate refused', () => {
  it('is counted by step, with the time of the last', async () => {
    const { store } = await openScene();
    await store.write((tx) => {
      tx.gate.refused('3', '2026-03-01T12:00:00.000Z');
      tx.gate.refused('1', '2026-03-01T12:00:01.000Z');
      tx.gate.refused('3', '2026-03-01T12:00:02.000Z');
    });
    expect(store.read((tx) => tx.gate.counts())).toEqual([
      { step: '1', count: 1, last_at: '2026-03-01T12:00:01.000Z' },
      { step: '3', count: 2, last_at: '2026-03-01T12:00:02.000Z' },
    ]);
  });
});
