// A session's process whose router is away: it starts one, and tells of it only what stays true.

import { rmSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { openScene, type Scene } from './desk.ts';
import { type Attached, arrived, attached, openFakeRouter, pass, registered } from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

const faultsOf = ({ faults }: Attached): Set<string> =>
  new Set(faults.map((fault) => (fault as { code: string }).code));

it('starts one without a word, and tells of it where none has come in 5 s', async () => {
  const host = attached(desk, path.join(desk.directory, 'nobody.sock'));
  await pass(desk.clock, 4_000, 100);
  expect(host.starts).toBeGreaterThan(3);
  expect(host.faults).toEqual([]);
  await pass(desk.clock, 5_000, 100);
  expect(faultsOf(host)).toEqual(new Set(['router_unreachable']));
});

it('counts anew where one came in between', async () => {
  const fake = await openFakeRouter(desk, () => registered());
  const host = attached(desk, fake.socketPath);
  await arrived();
  expect(fake.asked).toHaveLength(1);
  await pass(desk.clock, 6_000, 1_000);
  rmSync(fake.socketPath);
  for (const socket of fake.sockets) socket.destroy();
  await arrived();
  await pass(desk.clock, 4_000, 100);
  expect(host.faults).toEqual([]);
  await pass(desk.clock, 5_000, 100);
  expect(faultsOf(host)).toEqual(new Set(['router_unreachable']));
});
