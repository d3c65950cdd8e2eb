// The lines that a prompt and a session's start say of waiting mail. An inbox that cannot be read lets both go on.

import { type Addressee, waitingFor } from '../../mailbox/remind.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import { reminderLines } from '../../protocol/reminder.ts';

/** Whom the hook speaks for. */
export interface Reminded {
  addressee: Addressee;
  /** The line that says why a declared or configured recipient does not count. */
  ignored?: string;
}

export interface Reading {
  lines: string[];
  /** How many messages the lines are about, and those that did not fit. */
  unread: number;
  fault?: unknown;
}

/** None yet: silence. What kept it from being opened is said as any other fault of it. */
export type StoreOrFault = Store | { fault: unknown } | undefined;

export function readLines(store: StoreOrFault, clock: Clock, addressee: Addressee): Reading {
  if (store === undefined) return { lines: [], unread: 0 };
  if ('fault' in store) return { lines: [], unread: 0, fault: store.fault };
  try {
    const groups = store.read((tx) => waitingFor(tx, addressee, clock.nowMs()));
    return {
      lines: reminderLines(addressee.recipient ?? '', groups),
      unread: groups.reduce((sum, group) => sum + group.unread, 0),
    };
  } catch (fault) {
    return { lines: [], unread: 0, fault };
  }
}
