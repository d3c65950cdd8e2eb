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
        [project] = await Promise.all([projectOfHost(processEnvironment), turn.begin()]);
      },
      cover: (root, blocked) =>
        write(places.database, idsOf(blocked, project), (tx, ids) => coverTold(tx, desk, root, ids)),
      uncover: async (root, blocked) => {
        await write(places.database, idsOf(blocked, project), (tx, ids) => takeBackTold(tx, root, ids));
        fileWake(places.wakeFile).touch();
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

/** Only what the session's own bell would ring for: mail of its project. Undefined where that is not known. */
const idsOf = (blocked: readonly Waiting[], project: string | undefined): string[] | undefined =>
  project === undefined
    ? undefined
    : blocked.filter((one) => one.project === project).map(({ delivery_id }) => delivery_id);

async function write(
  path: string,
  ids: readonly string[] | undefined,
  work: (tx: Tx, ids: readonly string[]) => void,
): Promise<void> {
  if (ids === undefined) throw new Fault('project_unavailable', 'whose ring it is cannot be known');
  if (ids.length === 0) return;
  const store = await openStore({
    path,
    clock: systemClock,
    random: systemRandom,
    lockWaitMs: limits.hookStoreWaitMs,
  });
  try {
    await store.write((tx) => work(tx, ids));
  } finally {
    store.close();
  }
}
