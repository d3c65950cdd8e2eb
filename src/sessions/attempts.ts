import type { ConnectionRow } from '../ports/presence.ts';
import type { Tx } from '../ports/store.ts';
import { limits } from '../protocol/limits.ts';

/** Whether as much is being handed to it as its host is given at once. Counted where attempts are written: no burst passes it. */
export const takesNoMore = (tx: Tx, { connection_id }: Pick<ConnectionRow, 'connection_id'>): boolean =>
  tx.attempts.unfinishedOf(connection_id).length >= limits.handOffsPendingMax;
