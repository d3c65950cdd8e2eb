// Who can be reached: sessions, their bells, and what a sender may be told of them.

export const bells = ['listener', 'channel', 'codex-queue', 'acp', 'none'] as const;
export type Bell = (typeof bells)[number];

export const adapterKinds = [
  'claude-listener',
  'claude-channel',
  'codex-queue',
  'codex-app-server',
  'acp',
  'poll',
] as const;
export type AdapterKind = (typeof adapterKinds)[number];

export const hostKinds = ['claude', 'codex', 'gemini', 'other'] as const;
export type HostKind = (typeof hostKinds)[number];

/** Which of two processes for one session holds it: the stronger bell. */
export function bellStrength(bell: Bell): number {
  return bell === 'none' ? 0 : bell === 'listener' ? 1 : 2;
}

/** Whether a session of this kind knows its own id when it records intake. */
export function nameable(kind: AdapterKind): boolean {
  return kind !== 'acp' && kind !== 'codex-app-server';
}

/** What a sender learns about the recipient after the commit; observed, never stored. */
export type Presence = 'live' | 'full' | 'deaf' | 'away' | 'gone' | 'unknown' | 'not_checked';

const presenceOrder: readonly Presence[] = ['live', 'full', 'deaf', 'away', 'gone'];

/** A principal shows the best of its sessions. */
export function bestPresence(all: readonly Presence[]): Presence {
  return presenceOrder.find((state) => all.includes(state)) ?? 'unknown';
}

/** One live session, exactly these keys. */
export interface Card {
  session_id: string;
  principal_id: string;
  host_kind: HostKind;
  project: string;
  model: null;
  work_summary: string | null;
  active: boolean;
  generation: number;
  lease_expires_at_ms: number;
}

/** What a card says beside that, when it is asked in detail. */
export interface CardDetail {
  bell: Bell;
  /** Whether it can be rung, why not, and when it was rung last, newest first. */
  bell_state: { state: 'live' | 'deaf'; reason?: string; last_rings: string[] };
  /** How much waits for the session. */
  waiting: number;
  connected_at: string;
}

/** What a process says when it registers a session. */
export interface Registration {
  project: string;
  principal_id: string;
  session_id: string;
  adapter_kind: AdapterKind;
  bell: Bell;
  host_kind: HostKind;
  work_summary?: string;
  lease_ms?: number;
  if_free?: boolean;
}

/** Names one live registration of a session. */
export interface ConnectionKey {
  connection_id: string;
  generation: number;
}

/** LIVE, the one definition: no disconnect, and a lease in the future. The store asks the same in SQL. */
export function isLive(
  connection: { disconnect_reason: DisconnectReason | null; lease_expires_at_ms: number } | undefined,
  nowMs: number,
): boolean {
  return connection?.disconnect_reason === null && connection.lease_expires_at_ms > nowMs;
}

/** Whether a hand-off may still ring: its attempt is unfinished, and the connection it went to is live. */
export function handOffStands(
  attempt: { state: string } | undefined,
  connection: Parameters<typeof isLive>[0],
  nowMs: number,
): boolean {
  return attempt?.state === 'started' && isLive(connection, nowMs);
}

/** Reasons that say nothing of the session itself: its router went away, or did not hear of it. */
const sayNothing: readonly DisconnectReason[] = ['lease_expired', 'router_restart'];
export const isUnheard = (reason: DisconnectReason | null): boolean =>
  reason === null || sayNothing.includes(reason);

/** What a process says that stops because its session has a newer connection. */
export const replacedLine = 'replaced by a newer connection for this session; stopping.';

export type DisconnectReason =
  | 'adapter_disconnect'
  | 'socket_closed'
  | 'superseded'
  | 'lease_expired'
  | 'router_restart';
