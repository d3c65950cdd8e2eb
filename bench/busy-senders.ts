// Target 10: eight processes that send without pause, beside eight raw writers of the same rows: how fair the lock is to
// them, how long one waits at most, what fails, and how much they get done together.

import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { openDesk, sendOne } from './desk.ts';
import type { Outcome, Plan } from './metric.ts';
import { rawCommits } from './raw-commit.ts';

const writers = 8;
/** Every process is up by then. */
const gatherMs = 1_500;

interface Writer {
  count: number;
  longestMs: number;
  failed: number;
}

export async function busySenders({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const runMs = quick ? 2_000 : 6_000;
  const together = async (kind: 'busy-raw' | 'busy-send'): Promise<Writer[]> => {
    const place = path.join(directory, kind);
    mkdirSync(place, { recursive: true, mode: 0o700 });
    if (kind === 'busy-raw') rawCommits(place).close();
    else (await openDesk(place, 'no router')).close();
    const beginMs = Date.now() + gatherMs;
    const span = `${beginMs},${beginMs + runMs}`;
    return Promise.all(
      Array.from({ length: writers }, (_, nth) => child(program, kind, place, `${nth},${span}`)),
    );
  };
  const raw = await together('busy-raw');
  const sent = await together('busy-send');
  const total = (all: readonly Writer[]): number => all.reduce((sum, { count }) => sum + count, 0);
  const counts = sent.map(({ count }) => count);
  const fairness = Math.min(...counts) / Math.max(...counts);
  const rawCounts = raw.map(({ count }) => count);
  const of = `${writers} busy senders`;
  return [
    {
      id: '10a',
      what: `${of}: slowest / fastest`,
      unit: 'of 1',
      measured: fairness,
      target: 0.5,
      stretch: 0.9,
      atLeast: true,
      note: `raw writers ${(Math.min(...rawCounts) / Math.max(...rawCounts)).toFixed(2)}`,
    },
    {
      id: '10b',
      what: `${of}: longest wait`,
      unit: 'ms',
      measured: Math.max(...sent.map(({ longestMs }) => longestMs)),
      target: 250,
      stretch: 50,
      note: `raw writers ${Math.max(...raw.map(({ longestMs }) => longestMs)).toFixed(0)} ms`,
    },
    {
      id: '10c',
      what: `${of}: sends that failed`,
      unit: 'sends',
      measured: sent.reduce((sum, { failed }) => sum + failed, 0),
      target: 0,
    },
    {
      id: '10d',
      what: `${of}: sends a second`,
      unit: 'a second',
      measured: (total(sent) * 1_000) / runMs,
      yardstick: { what: `${writers} raw writers`, value: (total(raw) * 1_000) / runMs },
      target: 0.4,
      stretch: 0.5,
      atLeast: true,
    },
  ];
}

function child(program: string, kind: string, place: string, span: string): Promise<Writer> {
  const words = [process.argv[1] as string, program, '--child', kind, '--dir', place, '--span', span];
  const writer = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  writer.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  return new Promise((resolve, reject) => {
    writer.on('error', reject);
    writer.on('close', (code) =>
      code === 0 ? resolve(JSON.parse(text) as Writer) : reject(new Error(`a writer ended with ${code}`)),
    );
  });
}

/** One of the writers. */
export async function busyChild(kind: string, directory: string, span: string): Promise<void> {
  const [nth = 0, beginMs = 0, endMs = 0] = span.split(',').map(Number);
  const act = kind === 'busy-raw' ? rawWriter(directory, nth) : await sender(directory, nth);
  await new Promise((resolve) => setTimeout(resolve, beginMs - Date.now()));
  const done: Writer = { count: 0, longestMs: 0, failed: 0 };
  while (Date.now() < endMs) {
    const begun = performance.now();
    try {
      await act();
      done.count += 1;
    } catch {
      done.failed += 1;
    }
    done.longestMs = Math.max(done.longestMs, performance.now() - begun);
  }
  process.stdout.write(JSON.stringify(done));
}

function rawWriter(directory: string, nth: number): () => Promise<unknown> {
  const raw = rawCommits(directory, String(nth));
  return async () => raw.commit();
}

async function sender(directory: string, nth: number): Promise<() => Promise<unknown>> {
  const desk = await openDesk(directory, 'no router');
  let count = 0;
  return () => sendOne(desk, { project: 'p', recipient: 'r' }, `${nth}-${count++}`);
}
