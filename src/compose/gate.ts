// `postbell hook stop-gate`: the Stop gate of Claude Code, with its ledger, its turn beside the listeners, and the one
// write that it makes.

import { gateTurn } from '../mailbox/gate-turn.ts';
import type { Addressee } from '../mailbox/remind.ts';
import { coverTold, takeBackTold } from '../mailbox/reserve.ts';
import { stopGate, type Waiting } from '../mailbox/stop-gate.ts';
import { systemClock } from '../platform/clock.ts';
import { writeAll } from '../platform/descriptors.ts';
import { processEnvironment } from '../platform/environment.ts';
import { ledgersIn } from '../platform/ledgers.ts';
import { placesOf } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import { fileWake } from '../platform/wake.ts';
import type { Store, Tx } from '../ports/store.ts';
import { Fault } from '../protocol/errors.ts';
import type { HookOutcome } from '../protocol/hook-outcome.ts';
import { limits } from '../protocol/limits.ts';
import { locksIn } from '../store/lock.ts';
import { openStore } from '../store/open.ts';
import type { HookPayload } from '../surfaces/hooks/input.ts';
import { blockAnswer } from '../surfaces/hooks/outcome.ts';
import { note } from './failure.ts';
import { projectOfHost } from './project.ts';

/** The ledger's name where the host names no session. */
const noSession = 'main';

export async function runGate(
  store: Store,
  { session_id: session = noSession, active }: HookPayload,
  addressee: Addressee,
): Promise<HookOutcome> {
  const places = placesOf(processEnvironment);
  const clock = systemClock;
  const turn = gateTurn({ store, clock }, locksIn(places.runtime), session);
  const desk = { clock, random: systemRandom };
  let project: string | undefined;
  try {
    return await stopGate({
      store,
      clock,
      ledgers: ledgersIn(places.gateDirectory),
      addressee,
      session,
      active,
      // Git runs before the ledger, too: a gate that is killed after that has told nobody.
      begin: async () => {
        const asked = projectOfHost(processEnvironment);
        try {
          await turn.begin();
        } finally {
          project = await asked;
        }
      },
      cover: async (root, blocked) => {
        const ids = idsOf(blocked, project);
        const told = await write(places.database, (tx) => coverTold(tx, desk, root, ids));
        return async () => {
          if (told === undefined) return;
          await write(places.database, (tx) => takeBackTold(tx, root, told));
          fileWake(places.wakeFile).touch();
        };
      },
      print: (reason) => writeAll(1, blockAnswer(reason)),
    });
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
function idsOf(blocked: readonly Waiting[], project: string | undefined): string[] {
  if (project === undefined) throw new Fault('project_unavailable', 'whose ring it is cannot be known');
  return blocked.filter((one) => one.project === project).map(({ delivery_id }) => delivery_id);
}

async function write<T>(path: string, work: (tx: Tx) => T): Promise<T> {
  const store = await openStore({
    path,
    clock: systemClock,
    random: systemRandom,
    lockWaitMs: limits.hookStoreWaitMs,
  });
  try {
    return await store.write(work);
  } finally {
    store.close();
  }
}
