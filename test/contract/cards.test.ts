// The card of a session says which bell it has, and whose host's it is.

import { expect, it } from 'vitest';
import type { Bell } from '../../src/ports/bell.ts';
import { adapterKinds, bells, hostKinds } from '../../src/protocol/session.ts';
import { discover } from '../../src/sessions/discover.ts';
import { acp, channel, listener, queue } from '../conformance/adapters.ts';
import { managed } from '../conformance/fixture-managed.ts';
import { attach, openScene } from './desk.ts';

it('[SES-025] a card of each bell, each adapter and each kind of host', async () => {
  const desk = await openScene();
  const made = [listener, channel, queue, managed, acp].map((make) => make(desk, () => {}).bell);
  const of = (bell: Bell) => {
    const { bell: name, adapterKind, hostKind } = bell.describe();
    return { bell: name, adapter_kind: adapterKind, host_kind: hostKind };
  };
  const registrations = [
    ...made.map(of),
    { bell: 'acp', adapter_kind: 'acp', host_kind: 'other' },
    { bell: 'none', adapter_kind: 'poll', host_kind: 'other' },
  ] as const;
  for (const [nth, one] of registrations.entries()) await attach(desk, `s${nth}`, one);
  const cards = discover(desk.board, { project: 'shop', detail: true });
  expect(
    cards.toReversed().map((card) => [card.session_id, 'bell' in card && card.bell, card.host_kind]),
  ).toEqual([
    ['s0', 'listener', 'claude'],
    ['s1', 'channel', 'claude'],
    ['s2', 'codex-queue', 'codex'],
    ['s3', 'codex-queue', 'codex'],
    ['s4', 'acp', 'gemini'],
    ['s5', 'acp', 'other'],
    ['s6', 'none', 'other'],
  ]);
  const kinds = desk
    .rows('SELECT adapter_kind FROM connection ORDER BY rowid')
    .map((row) => row.adapter_kind);
  expect(kinds).toEqual([
    'claude-listener',
    'claude-channel',
    'codex-queue',
    'codex-app-server',
    'acp',
    'acp',
    'poll',
  ]);
  // None is left out.
  expect(new Set(registrations.map((one) => one.bell))).toEqual(new Set(bells));
  expect(new Set(kinds)).toEqual(new Set(adapterKinds));
  expect(new Set(registrations.map((one) => one.host_kind))).toEqual(new Set(hostKinds));
});
