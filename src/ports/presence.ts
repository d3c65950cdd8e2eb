// What the store holds of sessions: who is live, which ids are one, what was handed to whom, which router runs.

import type { AttemptState } from '../protocol/receipts.ts';
import type {
  AdapterKind,
  Bell,
  Card,
  DisconnectReason,
  HostKind,
  Registration,
} from '../protocol/session.ts';

/** Which router runs, and which versions must not start again yet. */
export interface Routers {
  began(row: RouterRun): void;
  newest(): RouterRun | undefined;
  supersede(version: string, atMs: number): void;
  supersededAtMs(version: string): number | undefined;
}

export interface RouterRun {
  instance: string;
  pid: number;
  version: string;
  socket: string;
  started_at: string;
}

export interface SessionRow {
  project: string;
  session_id: string;
  principal_id: string;
  adapter_kind: AdapterKind;
  bell: Bell;
  host_kind: HostKind;
  generation: number;
}

export interface ConnectionRow extends ConnectionSummary {
  router_instance: string;
  lease_expires_at_ms: number;
  connected_at: string;
  disconnect_reason: DisconnectReason | null;
}

export interface ConnectionSummary {
  connection_id: string;
  project: string;
  session_id: string;
  generation: number;
  principal_id: string;
  adapter_kind: AdapterKind;
  bell: Bell;
}

export interface Sessions {
  /** The newest registration record among `ids`, live or not. */
  registered(project: string, ids: readonly string[]): SessionRow | undefined;
  /** Whether one of `ids` was ever registered, in whatever project. */
  everRegistered(ids: readonly string[]): boolean;
  /** Of each session that ever was registered under the principal, its newest connection under it. */
  connectionsOf(project: string, principal: string): ConnectionRow[];
  /** Projects where a session with a bell is live under the principal. */
  projectsOf(principal: string, nowMs: number, count: number): string[];
  /** Live connections in whatever project, of sessions by their ids or of principals by their names. */
  liveAnywhere(
    of: { ids: readonly string[] } | { principals: readonly string[] },
    nowMs: number,
  ): ConnectionRow[];
  /** The newest live connection of any of `ids`. */
  live(project: string, ids: readonly string[], nowMs: number): ConnectionRow | undefined;
  /** Every live connection of `ids`, the newest first: more than one where ids were linked while both were live. */
  allLive(project: string, ids: readonly string[], nowMs: number): ConnectionRow[];
  /** The newest live connection of the principal that has a bell. */
  liveOfPrincipal(project: string, principal: string, nowMs: number): ConnectionRow | undefined;
  connection(connectionId: string): ConnectionRow | undefined;
  /** The last connection of the newest registration among `ids`. */
  last(project: string, ids: readonly string[]): ConnectionRow | undefined;
  cards(project: string, nowMs: number, count: number): Card[];
  /** In whatever project, with their bells, the newest first. */
  cardsAnywhere(nowMs: number, count: number): (Card & { bell: Bell })[];
  /** Writes session, connection and presence; on the first one also the principal with its checkpoint. */
  connect(row: {
    registration: Registration;
    connection_id: string;
    generation: number;
    router_instance: string;
    lease_expires_at_ms: number;
    at: string;
  }): void;
  checkpoint(project: string, principal: string): number | undefined;
  /** Changes nothing of a connection that has ended. */
  renew(connectionId: string, leaseExpiresAtMs: number, workSummary: string | undefined): void;
  disconnect(connectionId: string, reason: DisconnectReason, at: string): void;
  /** Open connections, optionally of other router instances than the given one. */
  open(exceptRouter?: string): ConnectionRow[];
}

export interface AttemptRow {
  attempt_id: string;
  delivery_id: string;
  connection_id: string;
  router_instance: string;
  state: AttemptState;
  failure_code: string | null;
}

export interface Acceptance {
  host_accept_id: string;
  delivery_id: string;
  attempt_id: string;
  content: 'full' | 'notice';
  adapter_kind: AdapterKind;
  /** JSON text. */
  receipt: string;
  accepted_at: string;
}

export interface Attempts {
  /** Numbers it and writes it as `started`. */
  start(row: {
    attempt_id: string;
    delivery_id: string;
    connection_id: string;
    router_instance: string;
    at: string;
  }): void;
  byId(attemptId: string): AttemptRow | undefined;
  /** Only an unfinished attempt is finished. */
  finish(attemptId: string, state: AttemptState, failureCode: string | undefined, at: string): void;
  /** How the prompt of its ring ended; whether it is finished or not. */
  noteStop(attemptId: string, reason: string): void;
  unfinishedOf(connectionId: string): AttemptRow[];
  accept(row: Acceptance): void;
  acceptanceOf(deliveryId: string): Acceptance | undefined;
  /** Whether it was handed to a host that has not refused it. */
  mayHaveReached(deliveryId: string): boolean;
}

export interface LauncherRow {
  pid: number;
  start_time: string;
  session_id: string;
}

/** Which ids name one session. */
export interface Identity {
  /** Every id of the session, the first of its chain first; at least `id` itself. */
  chain(id: string): string[];
  link(newId: string, oldId: string): void;
  launcher(pid: number): LauncherRow | undefined;
  recordLauncher(row: LauncherRow, at: string): void;
}
