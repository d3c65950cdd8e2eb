// A place in the events of one scope, as an opaque text that says it itself: nothing is recorded when it is handed out. The
// hash ties it to its scope and its store, so that a foreign or invented one is refused; it keeps no secret.

import { sha256Hex } from '../crypto/hash.ts';
import type { Tx } from '../ports/store.ts';
import { canonicalJson } from '../protocol/json.ts';

/** The events of a recipient, or the receipts of what a sender sent. */
export interface CursorScope {
  project: string;
  side: 'recipient' | 'sender';
  name: string;
}

const form = /^cur_([0-9a-z]{1,11})_([0-9a-f]{40})$/;

/** @param position the sequence of an event of this store */
export function nameCursor(tx: Tx, scope: CursorScope, position: number): string {
  const store = tx.messages.bounds()?.first ?? '';
  return `cur_${position.toString(36)}_${sealOf(store, scope, position)}`;
}

/** The position, or undefined where the cursor is of another scope or store, or none at all. */
export function readCursor(tx: Tx, scope: CursorScope, cursor: string): number | undefined {
  const [, digits = '', seal] = form.exec(cursor) ?? [];
  const position = Number.parseInt(digits, 36);
  const bounds = tx.messages.bounds();
  const known =
    bounds !== undefined && position <= bounds.last && seal === sealOf(bounds.first, scope, position);
  return known ? position : undefined;
}

function sealOf(store: string, { project, side, name }: CursorScope, position: number): string {
  return sha256Hex(canonicalJson([store, project, side, name, position])).slice(0, 40);
}
