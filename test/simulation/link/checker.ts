// A checker knows one promise of the link and says when it is broken. It sees each commit of each machine, each item that a
// machine hands to the network, and what people were answered.

import type { ReadHeader } from '../../../src/protocol/wire/header.ts';
import type { WireRecord } from '../../../src/protocol/wire/record.ts';
import type { Change } from '../disk.ts';
import type { Machine } from './machine.ts';
import type { LinkWorld } from './world.ts';

/** An item as its sender hands it over: opened with the key of the queue's owner, which no relay has. */
export interface Posting {
  machine: Machine;
  relay: string;
  /** Whose queue it goes to. */
  to: string;
  queueId: string;
  body: Uint8Array;
  header: ReadHeader['header'];
  record: WireRecord;
}

/** What a person did, or was answered. */
export type Deed =
  | { kind: 'sent'; key: string; messageId: string; to: string }
  | { kind: 'discarding'; messageId: string }
  | { kind: 'accepted'; key: string }
  | { kind: 'asked'; key: string }
  | { kind: 'trusts'; key: string }
  | { kind: 'trusts no more'; key: string }
  | { kind: 'read'; messageIds: readonly string[] }
  | { kind: 'disposed'; messageId: string };

export interface LinkChecker {
  name: string;
  onCommit?(machine: Machine, changes: readonly Change[]): void;
  onPost?(posting: Posting): void;
  onDeed?(machine: Machine, deed: Deed): void;
  /** Once nothing fails any more and time enough has passed. */
  atEnd?(): void;
}

export type MakeLinkChecker = (world: LinkWorld, broken: (text: string) => void) => LinkChecker;
