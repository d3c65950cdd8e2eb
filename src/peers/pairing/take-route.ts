// A peer, or another machine of this account, says where it is reached from now on.

import { isRefusal } from '../../protocol/errors.ts';
import type { WireRecord } from '../../protocol/wire/record.ts';
import { routeOf } from '../control.ts';
import type { PairingGround } from './ground.ts';

export type RouteRecord = Extract<WireRecord, { type: 'route' }>;

export async function takeRoute(
  ground: PairingGround,
  { from, fields, time_ms }: RouteRecord,
): Promise<'done' | 'later'> {
  const identity = ground.account.identity();
  const policy = ground.account.policy();
  if (isRefusal(identity) || isRefusal(policy)) return 'later';
  if (from !== identity.key && policy.of(from) === undefined) return 'done';
  const { device, ...route } = routeOf(fields);
  await ground.store.write((tx) => {
    if (from === identity.key && tx.places.get()?.device === device) return;
    // A relay that delivers an older one again sets nothing back.
    tx.devices.heard({ peer_key: from, device, heard_ms: Math.min(time_ms, ground.clock.nowMs()), route });
  });
  ground.wake.touch();
  return 'done';
}
