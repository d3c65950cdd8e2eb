// The Stop gate: before a turn ends, the agent is told once of each message that waits. The ledger alone guards against
// telling it twice; it is written before the block is printed, so that a crash between the two costs a reminder, which the
// schedule makes good, and never a loop of turns.

import type { Clock } from '../ports/clock.ts';
import type { GateLedger, Ledgers } from '../ports/ledger.ts';
import type { Store, Tx } from '../ports/store.ts';
import { describeError } from '../protocol/errors.ts';
import type { HookOutcome } from '../protocol/hook-outcome.ts';
import { limits } from '../protocol/limits.ts';
import { boundedLines, gateInstruction, reminderLines } from '../protocol/reminder.ts';
import { type Addressee, reachOf } from './remind.ts';

export interface GateOptions {
  store: Store;
  clock: Clock;
  ledgers: Ledgers;
  addressee: Addressee;
  /** Names the ledger; known also where it is not trusted for anything else. */
  session: string;
  /** The turn that stops goes on for an earlier block or a wake. */
  active: boolean;
  /** There is something to block for: no listener reads its rows from now on. */
  begin(): Promise<void>;
  /** Adds what is blocked for to the session's reservation. @returns takes it back */
  cover(root: string, blocked: readonly Waiting[]): Promise<() => Promise<void>>;
  /** Throws where nobody reads. */
  print(reason: string): void;
}

export interface Waiting {
  seq: number;
  delivery_id: string;
  message_id: string;
  project: string;
}

export async function stopGate(options: GateOptions): Promise<HookOutcome> {
  const { store, ledgers, session, active } = options;
  const ids = store.read((tx) => tx.identity.chain(session));
  const root = ids[0] as string;
  const lookNow = () => {
    const ledger = ledgerOf(ledgers, ids);
    return { ledger, ...store.read((tx) => look(tx, options, ledger)) };
  };
  const nothingNew: HookOutcome = { outcome: 'skipped', reason: 'nothing new' };
  if (isQuiet(lookNow())) return nothingNew;
  const problems: string[] = [];
  const faulty = (part: string) => (error: unknown) => {
    problems.push(`${part}: ${describeError(error).code}`);
  };
  await options.begin().catch(faulty('turn'));
  // Another gate of the session may have blocked meanwhile.
  const { ledger, fresh, lines } = lookNow();
  const done = (outcome: HookOutcome): HookOutcome =>
    problems.length > 0 ? { outcome: 'error', reason: problems.join('; ') } : outcome;
  if (isQuiet({ ledger, fresh })) return done(nothingNew);
  // What cannot be understood is said once.
  if (ledger.corrupt.length > 0) problems.push('ledger: corrupt');
  try {
    ledgers.write(root, after(ledger, fresh));
    for (const id of ledger.corrupt) if (id !== root) ledgers.write(id, empty);
  } catch (error) {
    faulty('ledger')(error);
    // Without a ledger only the first Stop of a turn may be blocked: every later one would be, too.
    if (active) return done(nothingNew);
  }
  if (fresh.length === 0) return done(nothingNew);
  const uncover = await options.cover(root, fresh).catch(faulty('coverage'));
  try {
    options.print(boundedLines(lines, gateInstruction));
  } catch {
    problems.push('print: closed');
    try {
      ledgers.write(root, ledger);
    } catch (error) {
      faulty('ledger')(error);
    }
    await uncover?.().catch(faulty('coverage'));
  }
  return done({ outcome: 'notified', reason: `blocked for ${fresh.length}` });
}

const empty: GateLedger = { floor: 0, blocked: [] };

/** Nothing to block for, and nothing to mend. */
const isQuiet = (seen: { ledger: { corrupt: readonly string[] }; fresh: readonly Waiting[] }): boolean =>
  seen.fresh.length === 0 && seen.ledger.corrupt.length === 0;

/** Of all ids of the session, since the first of a chain may have changed. */
function ledgerOf(ledgers: Ledgers, ids: readonly string[]): GateLedger & { corrupt: string[] } {
  const found = ids.map((id) => ledgers.read(id));
  const whole = found.filter((one) => one !== undefined && one !== 'corrupt');
  return {
    floor: Math.max(0, ...whole.map(({ floor }) => floor)),
    blocked: whole.flatMap(({ blocked }) => blocked),
    corrupt: ids.filter((_, nth) => found[nth] === 'corrupt'),
  };
}

const keyOf = (project: string, messageId: string): string => JSON.stringify([project, messageId]);

/** What waits and was not blocked for, a page at a time; and the lines that the prompt hook would print. */
function look(tx: Tx, { addressee, clock }: GateOptions, ledger: GateLedger) {
  const nowMs = clock.nowMs();
  const blocked = new Set(ledger.blocked.map(([, project, id]) => keyOf(project, id)));
  const reach = reachOf(tx, addressee, nowMs);
  const fresh: Waiting[] = [];
  for (let after = ledger.floor; ; ) {
    const page = tx.reminders.page(reach, after, limits.waitingPage);
    fresh.push(...page.filter((one) => !blocked.has(keyOf(one.project, one.message_id))));
    if (page.length < limits.waitingPage) break;
    after = page.at(-1)?.seq as number;
  }
  const groups = fresh.length > 0 ? tx.reminders.groups(reach) : [];
  return { fresh, lines: reminderLines(addressee.recipient ?? '', groups) };
}

/** The newest in the store are kept; what lies before them counts as blocked for. */
function after({ floor, blocked }: GateLedger, fresh: readonly Waiting[]): GateLedger {
  const all = [
    ...blocked,
    ...fresh.map(({ seq, project, message_id }) => [seq, project, message_id] as const),
  ].toSorted(([a], [b]) => a - b);
  const kept = all.slice(-limits.gateLedgerIdsMax);
  const dropped = all[all.length - kept.length - 1]?.[0] ?? 0;
  return { floor: Math.max(floor, dropped), blocked: kept };
}
