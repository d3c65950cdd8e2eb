import type { StoredMessage } from '../ports/mail.ts';
import type { Tx } from '../ports/store.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import type { TargetKind } from '../protocol/message.ts';

/**
 * The message for exactly this scope; with `sent` also one that went to another machine, which nobody here can fetch or
 * answer for. Any mismatch is `not_available`, and the answer does not say which.
 */
export function findMessage(
  tx: Tx,
  scope: { project: string; recipient: string; message_id: string },
  { targetKind, sent = false }: { targetKind?: TargetKind; sent?: boolean } = {},
): Result<StoredMessage> {
  const stored = tx.messages.byId(scope.message_id);
  const matches =
    stored !== undefined &&
    stored.message.project === scope.project &&
    stored.message.recipient === scope.recipient &&
    (sent || stored.message.peer === undefined) &&
    (targetKind === undefined || stored.message.target_kind === targetKind);
  return matches
    ? stored
    : new Refusal('not_available', 'no such message for this exact project, recipient and target_kind');
}
