// The account's own identity, whom it trusts, whom it asked, and what the gate refused.

import { fingerprint } from '../../crypto/fingerprint.ts';
import type { ControlJob } from '../../ports/pairing.ts';
import type { DeviceRow } from '../../ports/peers.ts';
import { isRefusal, type Result } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type DeviceState, deviceSeen } from '../device-state.ts';
import type { PairingGround } from './ground.ts';

export interface ShownDevice {
  device: string;
  state: DeviceState;
  /** When a verified record of it came last. */
  heard_at: string;
  relays: readonly string[];
}

export interface ShownPeer {
  name: string;
  key: string;
  fingerprint: string;
  /** Whether it is told more than that its mail is stored. */
  receipts: boolean;
  /** The best of its devices; `unknown` where none is known. */
  state: DeviceState;
  /** Null where nothing ever came from it. */
  last_heard_at: string | null;
  devices: ShownDevice[];
}

export interface ShownAsked {
  name: string;
  key: string;
  fingerprint: string;
  asked_at: string;
  /** Until then the request goes out again; in the past where it was not answered in its time. */
  asked_until: string;
  /** Whether a relay has taken the request; the other side's operator may never have seen it. */
  sent: boolean;
  /** Why the last try failed. */
  last_error?: string;
}

export interface ListAnswer {
  key: string;
  fingerprint: string;
  peers: ShownPeer[];
  /** Asked from here, and not answered. */
  asked: ShownAsked[];
  /** Requests of others that wait for the operator. */
  requests: number;
  /** What the trust gate refused, by its step. */
  refused: { step: string; count: number; last_at: string }[];
}

export function list({ account, clock, store }: PairingGround): Result<ListAnswer> {
  const identity = account.identity();
  if (isRefusal(identity)) return identity;
  const policy = account.policy();
  if (isRefusal(policy)) return policy;
  const nowMs = clock.nowMs();
  const { key } = identity;
  return store.read((tx) => {
    const jobs = tx.pairing.jobs.all();
    return {
      key,
      fingerprint: fingerprint(key),
      peers: policy.peers
        .map(({ name, key: of, receipts }) => ({
          name,
          key: of,
          fingerprint: fingerprint(of),
          receipts,
          ...devicesOf(tx.devices.of(of), nowMs),
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
      asked: tx.pairing.asked.all().map(({ name, peer_key, asked_ms }) => ({
        name,
        key: peer_key,
        fingerprint: fingerprint(peer_key),
        asked_at: new Date(asked_ms).toISOString(),
        asked_until: new Date(asked_ms + limits.controlKeptMs).toISOString(),
        ...onItsWay(jobs.find((job) => job.kind === 'pair_request' && job.peer_key === peer_key)),
      })),
      requests: tx.pairing.requests.count(),
      refused: tx.gate.counts(),
    };
  });
}

const best: readonly DeviceState[] = ['live', 'away', 'gone'];

/** @param rows the one heard of last first */
function devicesOf(
  rows: readonly DeviceRow[],
  nowMs: number,
): Pick<ShownPeer, 'state' | 'last_heard_at' | 'devices'> {
  const devices = rows.map((row) => ({
    device: row.device,
    state: deviceSeen(row, nowMs).state,
    heard_at: new Date(row.heard_ms).toISOString(),
    relays: row.relays,
  }));
  return {
    state: best.find((state) => devices.some((device) => device.state === state)) ?? 'unknown',
    last_heard_at: devices[0]?.heard_at ?? null,
    devices,
  };
}

const onItsWay = (job: ControlJob | undefined): Pick<ShownAsked, 'sent' | 'last_error'> => ({
  sent: job === undefined || job.accepted_ms !== null,
  ...(job !== undefined && job.last_error !== null && { last_error: job.last_error }),
});
