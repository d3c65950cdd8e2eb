// SessionStart: which session the host process runs from now on, so that an id that /clear gave away still names the
// same session; who it is; what waits for it; and what its person must know, in one line.

import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Wake } from '../../ports/wake.ts';
import type { HookOutcome } from '../../protocol/hook-outcome.ts';
import { boundedLines, identityLine, neverSeen } from '../../protocol/reminder.ts';
import { type HostProcess, recordSessionStart } from '../../sessions/alias.ts';
import { namesOf } from '../../sessions/principals.ts';
import { codeOf, faultLine, faultOf, hookAnswer, outcomeOf, refusalLine, type Said } from './outcome.ts';
import { type Reading, type Reminded, readLines } from './remind.ts';

export interface Start extends Reminded {
  session: string | undefined;
  source: string | undefined;
  /** The recipient was declared, and not merely configured: a name that nobody ever heard of may be a slip. */
  declared: boolean;
  /**
   * A word for why it is not known who runs the session: then nothing links its ids, which is recorded. `unlinked`: the host
   * gives a session one id for life.
   */
  host: HostProcess | 'unknown' | 'windows' | 'unlinked';
  project: Promise<string | undefined> | undefined;
  /** Whether the host shows its person a line that its model does not see. */
  banner: boolean;
  /** What the person must know of how the host was launched. */
  warning?: string | undefined;
}

interface Ports {
  /** What kept it from being opened is said as any other fault of it. */
  store: Store | { fault: unknown };
  clock: Clock;
  wake: Wake;
}

export async function sessionStart(ports: Ports, start: Start): Promise<Said> {
  const { store, clock } = ports;
  const open = 'fault' in store ? undefined : store;
  const linking = open === undefined ? undefined : await link({ ...ports, store: open }, start);
  const reading = readLines(store, clock, start.addressee);
  const { ignored, warning } = start;
  const { recipient } = start.addressee;
  const { hint, fault: hintFault } = open === undefined ? {} : unheard(open, start, reading);
  const project = await start.project;
  const context = [
    ...(start.session === undefined || recipient === undefined
      ? []
      : [identityLine(start.session, recipient, project)]),
    ...(ignored === undefined ? [] : [ignored]),
    ...(hint === undefined ? [] : [hint]),
    ...reading.lines,
  ];
  const faults: (readonly [part: string, fault: unknown])[] = [
    ...(linking === undefined ? [] : [['launcher', linking] as const]),
    ...[reading.fault, hintFault].flatMap((fault) =>
      fault === undefined ? [] : [['inbox', fault] as const],
    ),
  ];
  const banner = [
    ...(reading.unread === 0
      ? []
      : [`${reading.unread} ${reading.unread === 1 ? 'message waits' : 'messages wait'}`]),
    ...(ignored === undefined ? [] : [ignored]),
    ...(hint === undefined ? [] : [hint]),
    ...(warning === undefined ? [] : [warning]),
    ...faults.map(([part, fault]) => `${part}: ${codeOf(fault)} (postbell doctor says more)`),
  ].join('; ');
  const first = faults[0];
  return {
    stdout: hookAnswer(
      'SessionStart',
      boundedLines(context),
      banner === '' || !start.banner ? undefined : `Postbell: ${banner}`,
    ),
    stderr: refusalLine(ignored) + faults.map(([part, fault]) => faultLine(part, fault)).join(''),
    outcome:
      first === undefined
        ? unlinked(start, outcomeOf(reading.lines.length + (hint === undefined ? 0 : 1), ignored))
        : faultOf(...first),
  };
}

/** A session whose ids nobody can link, by the record of its start. Windows has no such link. */
function unlinked({ host, session }: Start, outcome: HookOutcome): HookOutcome {
  if (typeof host !== 'string' || host === 'unlinked' || session === undefined) return outcome;
  const reason = `launcher: ${host}; ${outcome.reason}`;
  return { outcome: host === 'windows' ? outcome.outcome : 'error', reason };
}

/** The fault that kept the ids apart: then reminders go on under the hook's own id. */
async function link(
  ports: Ports & { store: Store },
  { session, source = 'startup', host }: Start,
): Promise<unknown> {
  if (session === undefined || typeof host === 'string') return undefined;
  try {
    await recordSessionStart(ports, host, { session_id: session, source });
    return undefined;
  } catch (fault) {
    return fault;
  }
}

/** The hint for a declared name that has nothing waiting anywhere and was never addressed or registered. */
function unheard(
  store: Store,
  { addressee, declared }: Start,
  { unread, fault }: Reading,
): { hint?: string; fault?: unknown } {
  const { recipient } = addressee;
  if (!declared || recipient === undefined || fault !== undefined || unread > 0) return {};
  try {
    const seen = store.read((tx) => tx.reminders.everSeen(namesOf(tx, recipient)));
    return seen ? {} : { hint: neverSeen(recipient) };
  } catch (unseen) {
    return { fault: unseen };
  }
}
