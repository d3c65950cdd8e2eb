// The benchmark's own process: one measurement after another, then the table and the JSON. A missed target is
// printed, not failed: only a measurement that breaks ends with a failure.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { adapterWake } from './adapter.ts';
import { busyChild, busySenders } from './busy-senders.ts';
import { conditionsAt, load } from './conditions.ts';
import { fiftySessions, idleWakeUps } from './idle.ts';
import { inboxOfTwenty } from './inbox.ts';
import { linkRate } from './link.ts';
import { listenerWake } from './listener.ts';
import { localSend } from './local-send.ts';
import { idleMemory } from './memory.ts';
import { figure, type Outcome, type Plan } from './metric.ts';
import { endAll } from './program.ts';
import { relayChild, relayItems, relayMemory } from './relay.ts';
import { routerWrites } from './router-writes.ts';
import { sessionMemory } from './session-memory.ts';
import { cliSend, firstAnswer, hooks } from './start-up.ts';
import { syncsChild, syncsOfSend } from './syncs.ts';
import { head, table, verdict } from './table.ts';
import { hooksOfTurn } from './turn.ts';

const measurements: Readonly<Record<string, (plan: Plan) => Outcome[] | Promise<Outcome[]>>> = {
  1: localSend,
  2: adapterWake,
  3: listenerWake,
  4: hooks,
  turn: hooksOfTurn,
  5: cliSend,
  6: firstAnswer,
  7: idleMemory,
  8: sessionMemory,
  9: idleWakeUps,
  fifty: fiftySessions,
  10: busySenders,
  11: routerWrites,
  13: inboxOfTwenty,
  15: relayItems,
  relay: relayMemory,
  17: linkRate,
  syncs: syncsOfSend,
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean' },
      only: { type: 'string' },
      json: { type: 'string' },
      dir: { type: 'string' },
      child: { type: 'string' },
      span: { type: 'string' },
    },
  });
  const { quick = false, only, json, dir = tmpdir(), child, span = '' } = values;
  if (child?.startsWith('busy-')) return busyChild(child, dir, span);
  if (child?.startsWith('relay-')) return relayChild(child, dir);
  if (child !== undefined) return syncsChild(child, dir);
  const directory = mkdtempSync(path.join(path.resolve(dir), 'pbb-'));
  const clean = (): Promise<void> =>
    endAll().finally(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void clean().finally(() => process.exit(1)));
  try {
    const plan: Plan = { program: positionals[0] as string, directory, quick };
    report(await measure(plan, only?.split(',')), json);
  } finally {
    await clean();
  }
}

async function measure(plan: Plan, only: readonly string[] | undefined) {
  const conditions = conditionsAt(path.join(plan.directory, 'conditions'));
  const outcomes: Outcome[] = [];
  for (const [id, of] of Object.entries(measurements)) {
    if (only !== undefined && !only.includes(id)) continue;
    process.stderr.write(`measuring ${id}\n`);
    outcomes.push(...(await attempt(id, () => of(plan))));
  }
  return {
    conditions: { ...conditions, load_after: load() },
    rounds: plan.quick ? 'quick' : 'full',
    outcomes,
  };
}

/** One that breaks leaves the others' figures standing, and fails the run. */
async function attempt(id: string, measurement: () => Outcome[] | Promise<Outcome[]>): Promise<Outcome[]> {
  try {
    return await measurement();
  } catch (error) {
    process.exitCode = 1;
    return [{ id, what: 'broke', why: String(error) }];
  } finally {
    await endAll();
  }
}

/** The JSON goes to the file, else to stdout below the table. */
function report({ conditions, rounds, outcomes }: Awaited<ReturnType<typeof measure>>, file?: string): void {
  process.stdout.write(`${head(conditions)}\n\n${table(outcomes)}\n`);
  const results = outcomes.map((outcome) =>
    'why' in outcome ? outcome : { ...outcome, figure: figure(outcome), verdict: verdict(outcome) },
  );
  const text = `${JSON.stringify({ conditions, rounds, results }, null, 2)}\n`;
  if (file === undefined) process.stdout.write(`\n${text}`);
  else writeFileSync(file, text);
}

void main();
