// What is known of a peer's device: what relays said of it when they were asked last, and that a record of it came. Silence is not
// death; a device that unregistered is gone.

import type { DeviceRow } from '../ports/peers.ts';
import { limits } from '../protocol/limits.ts';

export type DeviceState = 'live' | 'away' | 'gone' | 'unknown';

export interface Seen {
  state: DeviceState;
  /** Since it was heard of last; undefined where it never was. */
  age_ms: number | undefined;
}

export function deviceSeen(row: DeviceRow, nowMs: number): Seen {
  const drained =
    row.looked_ms === null || row.age_ms === null ? undefined : nowMs - row.looked_ms + row.age_ms;
  const heard = nowMs - row.heard_ms;
  const age_ms = Math.max(0, drained === undefined ? heard : Math.min(drained, heard));
  if (row.gone && (row.looked_ms ?? 0) >= row.heard_ms) return { state: 'gone', age_ms };
  return { state: stateOfAge(age_ms), age_ms };
}

function stateOfAge(ageMs: number): DeviceState {
  if (ageMs < limits.peerLiveMs) return 'live';
  return ageMs <= limits.peerAwayMs ? 'away' : 'gone';
}
