// `postbell hook stop-gate`: the Stop gate of Claude Code, with its ledger, its turn beside the listeners, and the one
// write that it makes.

import { gateTurn } from '../mailbox/gate-turn.ts';
import { coverTold } from '../mailbox/reserve.ts';
import { stopGate, type Waiting } from '../mailbox/stop-gate.ts';
import { systemClock } from '../platform/clock.ts';
import { writeAll } from '../platform/descriptors.ts';
import { processEnvironment } from '../platform/environment.ts';
import { ledgersIn } from '../platform/ledgers.ts';
import { placesOf } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { refusedRecipient } from '../protocol/reminder.ts';
import type { HostKind } from '../protocol/session.ts';
import { locksIn } from '../store/lock.ts';
import { openStore } from '../store/open.ts';
import type { HookPayload } from '../surfaces/hooks/input.ts';
import { faultLine, faultOf } from '../surfaces/hooks/outcome.ts';
import type { Said } from '../surfaces/hooks/prompt.ts';
import type { Reminded, StoreOrFault } from '../surfaces/hooks/remind.ts';
import { note } from './failure.ts';
import { projectOfHost } from './project.ts';

/** The ledger's name where the host names no session. */
const noSession = 'main';

export async function runGate(
  store: StoreOrFault,
  host: HostKind | undefined,
  payload: HookPayload,
  { addressee, ignored }: Reminded,
): Promise<Said> {
  const stderr = ignored === undefined ? '' : `${refusedRecipient(ignored)}\n`;
  const skipped = (reason: string): Said => ({ stdout: '', stderr, outcome: { outcome: 'skipped', reason } });
  // The form of the block is Claude Code's own.
  if (host !== 'claude') return skipped('not this host');
  if (payload.problem !== undefined) return skipped('no input');
  if (store === undefined) return skipped('no mail yet');
  if ('fault' in store)
    return {
      stdout: '',
      stderr: stderr + faultLine('inbox', store.fault),
      outcome: faultOf('inbox', store.fault),
    };
  const places = placesOf(processEnvironment);
  const session = payload.session_id ?? noSession;
  const clock = systemClock;
  const turn = gateTurn({ store, clock }, locksIn(places.runtime), session);
  let project: string | undefined;
  try {
    const outcome = await stopGate({
      store,
      clock,
      ledgers: ledgersIn(places.gateDirectory),
      addressee,
      session,
      active: payload.active,
      // Whatever may take time comes before the ledger: a gate that is killed after that has told nobody.
      begin: async () => {
        project = await projectOfHost(processEnvironment);
        await turn.begin();
      },
      cover: (root, blocked) => cover(places.database, project, root, blocked),
      print: (reason) => writeAll(1, JSON.stringify({ decision: 'block', reason })),
    });
    return { stdout: '', stderr, outcome };
  } finally {
    // A listener then waits out its 3 s; the block stands.
    try {
      turn.end();
    } catch (error) {
      note(error);
    }
  }
}

/** Only what the session's own bell would ring for: mail of its project. */
async function cover(
  path: string,
  project: string | undefined,
  root: string,
  blocked: readonly Waiting[],
): Promise<void> {
  if (project === undefined) throw new Fault('project_unavailable', 'whose ring it is cannot be known');
  const ids = blocked.filter((one) => one.project === project).map(({ delivery_id }) => delivery_id);
  if (ids.length === 0) return;
  const desk = { clock: systemClock, random: systemRandom };
  const store = await openStore({ path, ...desk, lockWaitMs: limits.hookStoreWaitMs });
  try {
    await store.write((tx) => coverTold(tx, desk, root, ids));
  } finally {
    store.close();
  }
}
