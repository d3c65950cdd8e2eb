// The row of what became of the hooks: they say nothing to anybody when they fail, so that this is where it is seen.

import { type Finding, worst } from '../../protocol/doctor.ts';
import { isObject } from '../../protocol/json.ts';
import { type DoctorFacts, unseen } from './facts.ts';

const askedMs = 7 * 86_400_000;
/** Hooks and reasons are a few plain words, as the hooks write them; anything that could be more is not shown. */
const code = /^[\w.:; -]{1,120}$/;

interface Run {
  hook: string;
  outcome: string;
  reason: string;
  atMs: number;
}

export function hookActivity({ outcomes, nowMs }: DoctorFacts): Finding {
  const closed = outcomes.find((one) => one.state === 'closed');
  if (closed?.state === 'closed') return unseen(closed.why, 'look at hook-outcomes.jsonl');
  const lines = outcomes
    .flatMap((one) => (one.state === 'found' ? one.value.split('\n') : []))
    .filter((line) => line !== '');
  if (lines.length === 0) return { level: 'info', text: 'no hook has left an outcome yet' };
  const runs = lines.flatMap((line) => readRun(line) ?? []);
  const findings: Finding[] = [];
  if (runs.length < lines.length)
    findings.push({
      level: 'warn',
      text: `${lines.length - runs.length} of ${lines.length} lines of hook-outcomes.jsonl are unreadable`,
      hint: 'look at the file: who else writes there?',
    });
  const errors = runs.filter(({ outcome, atMs }) => outcome === 'error' && atMs > nowMs - askedMs);
  if (errors.length > 0)
    findings.push({
      level: 'warn',
      text: `hooks ended with errors in 7 days: ${counted(errors)}`,
      hint: 'mend what the other rows say; the lines are in hook-outcomes.jsonl',
    });
  const refused = runs.filter(
    ({ reason, atMs }) => reason.endsWith('recipient refused') && atMs > nowMs - askedMs,
  );
  if (refused.length > 0)
    findings.push({
      level: 'warn',
      text: `POSTBELL_RECIPIENT was refused and ignored in 7 days, times: ${refused.length}`,
      hint: 'start the session with a name (POSTBELL_RECIPIENT=reviewer claude) or without the variable',
    });
  const last = runs.at(-1);
  const since = last === undefined ? '' : `, the last at ${new Date(last.atMs).toISOString()}`;
  return worst(findings, {
    level: 'pass',
    text: `no error of a hook in 7 days; runs on record: ${runs.length}${since}`,
  });
}

function readRun(line: string): Run | undefined {
  try {
    const read: unknown = JSON.parse(line);
    if (!isObject(read)) return undefined;
    const { hook, outcome, reason, time } = read;
    const atMs = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    if (typeof outcome !== 'string' || Number.isNaN(atMs)) return undefined;
    return { hook: coded(hook), outcome, reason: coded(reason), atMs };
  } catch {
    return undefined;
  }
}

const coded = (value: unknown): string => (typeof value === 'string' && code.test(value) ? value : 'unnamed');

/** By hook and reason, the most frequent first. */
function counted(errors: readonly Run[]): string {
  const counts = new Map<string, number>();
  for (const { hook, reason } of errors)
    counts.set(`${hook} ${reason}`, (counts.get(`${hook} ${reason}`) ?? 0) + 1);
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([what, count]) => `${what} (${count})`)
    .join(', ');
}
