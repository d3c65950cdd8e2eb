// A checker knows one promise of the product and says when it is broken. It sees each commit before and after it is
// taken into the facts, and what processes were seen to do.

import type { SendRequest } from '../../src/protocol/requests.ts';
import type { Row } from '../../src/store/database.ts';
import type { Change } from './disk.ts';
import type { Delivery, Facts } from './facts.ts';
import type { Process } from './process.ts';

/** A session as the world knows it, whatever the store says. */
export interface SessionView {
  project: string;
  /** The id that its server was started under. */
  id: string;
  principal: string;
}

/** What an answer says of a message. */
export interface Told {
  native: boolean;
  quieted?: string;
  state?: string;
  /** The delivery to the session that refused. */
  fallbackOf?: string;
  /** Of an answer that lists facts: whether it lists that its time has passed. */
  expired?: boolean;
}

/** What a process was seen to do. */
export type Deed =
  | { kind: 'asked'; call: 'send'; key: string; letter: SendRequest }
  | { kind: 'answered'; call: 'send'; key: string; messageId: string }
  | { kind: 'asked'; call: 'consume'; session: string | undefined; messageIds: readonly string[] }
  | { kind: 'answered'; call: 'consume'; messageIds: readonly string[] }
  | { kind: 'received'; caller: SessionView; messageIds: readonly string[]; limit: number; remaining: number }
  | {
      kind: 'handed';
      attemptId: string;
      deliveryId: string;
      connectionId: string;
      generation: number;
      session: SessionView;
    }
  | { kind: 'found'; messageId: string; found: boolean }
  | { kind: 'polled'; project: string; recipient: string; deliveryIds: readonly string[]; since: number }
  | ({ kind: 'told'; messageId: string } & Told)
  | { kind: 'listening'; router: string }
  | { kind: 'printed'; session: string; notice: string };

/** Where a checker looks. */
export interface Sight {
  facts: Facts;
  /** The store itself, for what is compared once at the end. */
  rows(sql: string): Row[];
  nowMs(): number;
  /** Whether the delivery is this session’s by what really happened on the machine. */
  mayRead(session: SessionView, delivery: Delivery): boolean;
  /** The session of which `id` is one id, as the world knows it; undefined where its host has gone. */
  sessionNamed(id: string): SessionView | undefined;
  broken(text: string): void;
}

export interface Checker {
  name: string;
  /** The facts are still those before this commit. */
  beforeCommit?(changes: readonly Change[], by: Process | undefined): void;
  afterCommit?(changes: readonly Change[], by: Process | undefined): void;
  onDeed?(deed: Deed, by: Process | undefined): void;
  /** Now and then, between steps. */
  look?(): void | Promise<void>;
  /** From here on nothing fails any more. */
  onCalm?(): void;
  /** Once nothing fails any more and time enough has passed. */
  atEnd?(): void;
}

export type MakeChecker = (sight: Sight) => Checker;

export const described = (delivery: Delivery): string =>
  `${delivery.id} (to ${delivery.recipient} in ${delivery.project}${delivery.intended ? `, meant for ${delivery.intended}` : ''})`;
