// Who the caller is, as others address it; without the router.

import { isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import type { Bell } from '../protocol/session.ts';
import type { Caller, Desk } from './desk.ts';
import { principalsOf } from './inbox.ts';

export interface WhoAnswer {
  session_id: string;
  /** Other ids of the same session. */
  aliases: string[];
  principal_id?: string;
  /** Absent where none is bound. */
  project?: string;
  /** Of the last registration in the project, if there was one. */
  bell?: Bell;
  generation?: number;
}

export function whoAmI(
  desk: Pick<Desk, 'store'>,
  caller: Caller,
  project: Result<string>,
): Result<WhoAnswer> {
  const { session } = caller;
  if (session === undefined) return new Refusal('invalid_request', 'this caller is no session');
  return desk.store.read((tx) => {
    const ids = tx.identity.chain(session);
    const who = { session_id: session, aliases: ids.filter((id) => id !== session) };
    if (isRefusal(project))
      return { ...who, ...(caller.principal !== undefined && { principal_id: caller.principal }) };
    const [principal] = principalsOf(tx, project, ids, caller);
    const registered = tx.sessions.registered(project, ids);
    return {
      ...who,
      project,
      ...(principal !== undefined && { principal_id: principal }),
      ...(registered !== undefined && { bell: registered.bell, generation: registered.generation }),
    };
  });
}
