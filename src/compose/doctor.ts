// `postbell doctor`: looks, and says what it saw. It makes and changes nothing, and starts nothing that goes on, without
// `--fix`; with it, only the steps that it shows.

import { rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { processEnvironment } from '../platform/environment.ts';
import { ensureDirectory } from '../platform/files.ts';
import { lookAt, namesIn } from '../platform/look.ts';
import { placesOf } from '../platform/paths.ts';
import { isAlive } from '../platform/processes.ts';
import { runProgram } from '../platform/programs.ts';
import { say } from '../platform/stderr.ts';
import { type DoctorRow, verdictOf } from '../protocol/doctor.ts';
import { Fault } from '../protocol/errors.ts';
import { harmless } from '../protocol/json.ts';
import { type Mendable, type Step, saidOf, stepsFor } from '../surfaces/doctor/mending.ts';
import { asJson, asText, rowsOf } from '../surfaces/doctor/rows.ts';
import { examine } from './examine.ts';
import { failWithoutOutput, orFail } from './failure.ts';

const hostCommandMs = 120_000;

export function main(words: readonly string[]): Promise<void> {
  failWithoutOutput(words);
  const print = (rows: readonly DoctorRow[]): void =>
    void process.stdout.write(words.includes('--json') ? asJson(rows) : asText(rows));
  return orFail(words, async (rest) => {
    const { fix, yes, probeRelays } = readFlags(rest);
    const look = () => examine(processEnvironment, { probeRelays });
    const facts = await look();
    const steps = fix ? stepsFor(facts, mendable()) : [];
    if (steps.length > 0 && !yes && process.stdin.isTTY !== true) {
      for (const step of steps) say(`would ${harmless(saidOf(step))}\n`);
      print(rowsOf(facts));
      throw new Fault('usage', 'nothing was mended: there is no terminal to ask at; give --yes');
    }
    const failed = await mend(steps, yes);
    const rows = rowsOf(steps.length > 0 ? await look() : facts);
    print(rows);
    process.exitCode = failed || verdictOf(rows) === 'FAIL' ? 1 : 0;
  });
}

function readFlags(words: readonly string[]): { fix: boolean; yes: boolean; probeRelays: boolean } {
  const usage = new Fault('usage', 'doctor takes --json, --probe-relays, --fix, and --yes with --fix');
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        fix: { type: 'boolean' },
        yes: { type: 'boolean' },
        'probe-relays': { type: 'boolean' },
      },
    });
    const { fix = false, yes = false, 'probe-relays': probeRelays = false } = values;
    if (!yes || fix) return { fix, yes, probeRelays };
  } catch {
    // said below
  }
  throw usage;
}

function mendable(): Mendable {
  const { directory, runtime, hostDirectory, gateDirectory } = placesOf(processEnvironment);
  return {
    missingDirectories: [directory, runtime].filter((one) => lookAt(one).state === 'missing'),
    drafts: [directory, hostDirectory, gateDirectory].flatMap(deadDrafts),
  };
}

/** What a process leaves that dies between writing a private file and putting it in its place, or while the log begins anew. */
function deadDrafts(directory: string): string[] {
  const names = namesIn(directory);
  return (names.state === 'found' ? names.value : []).flatMap((name) => {
    const [, draft, log] =
      /^(?:\.\S+\.(?:token|json)\.(\d{1,10})|hook-outcomes\.jsonl\.(\d{2,10}))$/.exec(name) ?? [];
    const pid = Number(draft ?? log);
    const found = lookAt(path.join(directory, name));
    const isOurs = found.state === 'found' && found.value.kind === 'file' && found.value.own;
    return isOurs && pid > 0 && !isAlive(pid) ? [path.join(directory, name)] : [];
  });
}

/** Shows each step, asks, and does it. @returns whether one failed; what comes after it is not done */
async function mend(steps: readonly Step[], yes: boolean): Promise<boolean> {
  for (const step of steps) {
    const said = harmless(saidOf(step));
    if (!yes && !(await agreed(said))) {
      say('left as it is\n');
      continue;
    }
    if (yes) say(`${said}\n`);
    const wrong = await perform(step);
    if (wrong === undefined) continue;
    say(`${said}: ${harmless(wrong)}\n`);
    return true;
  }
  return false;
}

async function agreed(said: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${said}? [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

/** @returns what went wrong */
async function perform(step: Step): Promise<string | undefined> {
  if (step.kind === 'run') return runStep(step.words);
  try {
    if (step.kind === 'make') ensureDirectory(step.directory);
    else rmSync(step.file, { force: true });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A command of the host, with all that this account has: it is the host's own. */
async function runStep([file = '', ...words]: readonly string[]): Promise<string | undefined> {
  const ran = await runProgram(file, words, { env: processEnvironment, timeoutMs: hostCommandMs });
  if (ran.code === 0) return undefined;
  const lines = `${ran.stdout}\n${ran.stderr}`.trim().split('\n');
  // Codex prints where it failed after what failed.
  const said = lines.find((line) => line.startsWith('Error: ')) ?? lines.at(-1) ?? '';
  return `ended with ${ran.code}: ${said}`;
}
