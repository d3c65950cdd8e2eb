// Which of a peer's devices a message goes to. Decided when it is sent and, where none was known, again whenever something is
// heard of the peer; from then on the message stays with its device, whose mail waits there, until that has left its queue.

import type { DeviceRow } from '../ports/peers.ts';
import type { Tx } from '../ports/store.ts';
import type { TargetKind } from '../protocol/message.ts';
import type { CardSession } from '../protocol/wire/record.ts';
import { deviceSeen, type Seen } from './device-state.ts';

export interface Wanted {
  project: string;
  recipient: string;
  target_kind: TargetKind;
  intended_session?: string;
}

export interface KnownDevice extends Seen {
  row: DeviceRow;
}

export type Choice =
  | { device: string }
  /** None is known: the message waits. */
  | 'none'
  /** Several fit alike. */
  | { several: KnownDevice[] };

export const knownDevices = (tx: Tx, peerKey: string, nowMs: number): KnownDevice[] =>
  tx.devices.of(peerKey).map((row) => ({ row, ...deviceSeen(row, nowMs) }));

export const isOn = (
  card: CardSession,
  { project, recipient, target_kind, intended_session }: Wanted,
): boolean => {
  if (target_kind === 'session') return card.session_id === recipient && card.project === project;
  if (intended_session !== undefined && card.session_id !== intended_session) return false;
  return card.principal === recipient && card.project === project;
};

export function chooseDevice(devices: readonly KnownDevice[], wanted: Wanted): Choice {
  const usable = devices.filter(({ state }) => state !== 'gone');
  const listing = usable.filter(({ row }) => row.sessions.some((card) => isOn(card, wanted)));
  const live = (of: readonly KnownDevice[]) => of.filter(({ state }) => state === 'live');
  const heard = [...usable].sort((a, b) => b.row.heard_ms - a.row.heard_ms)[0];
  for (const group of [live(listing), listing]) {
    const [only, ...others] = group;
    if (only !== undefined) return others.length === 0 ? { device: only.row.device } : { several: group };
  }
  if (heard !== undefined && heard.row.heard_ms > 0) return { device: heard.row.device };
  for (const group of [live(usable), usable]) {
    const [only, ...others] = group;
    if (only !== undefined) return others.length === 0 ? { device: only.row.device } : { several: group };
  }
  // One that unregistered keeps its queue: its mail waits there.
  const [last] = [...devices].sort((a, b) => b.row.heard_ms - a.row.heard_ms);
  return last === undefined ? 'none' : { device: last.row.device };
}
