// The task a session works on, as far as its messages say: best-effort, for the progress nudge alone. A failure here
// changes nothing for the send.

import type { Tx } from '../ports/store.ts';
import { Fault } from '../protocol/errors.ts';
import type { Message } from '../protocol/message.ts';
import type { Caller, Desk } from './desk.ts';

const endings = new Set(['result', 'failed', 'canceled']);

export async function noteProgress(desk: Desk, message: Message, caller: Caller): Promise<void> {
  const { task_id, status } = message;
  if (task_id === undefined || status === 'needs_input') return;
  if (caller.session === undefined && (status === undefined || !endings.has(status))) return;
  try {
    await desk.store.write((tx) => note(tx, desk, message, caller));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
}

function note(tx: Tx, desk: Desk, message: Message, caller: Caller): void {
  const { task_id = '', status, recipient, target_kind, project } = message;
  const nowMs = desk.clock.nowMs();
  const root = caller.session && tx.identity.chain(caller.session)[0];
  if (status !== undefined && endings.has(status)) {
    const inbox = target_kind === 'session' ? (tx.identity.chain(recipient)[0] as string) : recipient;
    // One of that name here works on something else.
    if (message.peer === undefined) tx.tasks.clear({ project, task_id, target_kind, recipient: inbox });
    if (root !== undefined) tx.tasks.clear({ session_root: root, task_id });
  }
  if (root === undefined) return;
  if (status === undefined)
    tx.tasks.mark({
      session_root: root,
      project,
      principal_id: caller.principal ?? null,
      task_id,
      since_ms: nowMs,
    });
  else tx.tasks.restart(root, nowMs);
}
