// Machines, relays and the network between them, on one clock. Nothing happens here but by events of the timeline, and every
// choice is drawn from the dice: the same seed gives the same history.

import { Dice } from '../dice.ts';
import type { Change } from '../disk.ts';
import { Process, type ProcessKind } from '../process.ts';
import { Tally } from '../tally.ts';
import { delayMs, type Event, schedule, Timeline } from '../timeline.ts';
import { Trace } from '../trace.ts';
import type { Failure } from '../world.ts';
import type { Deed, LinkChecker, Posting } from './checker.ts';
import type { Machine } from './machine.ts';
import type { SimulatedRelay } from './relay.ts';

export const startMs = Date.parse('2026-03-01T12:00:00.000Z');

/** How often things go wrong; all zero once the world is calm. */
export interface Faults {
  killInWrite: number;
  killAfterWrite: number;
  brokenWrite: number;
  lateWrite: number;
  lostRequest: number;
  lostAnswer: number;
  twice: number;
  busyRelay: number;
}

const calm: Faults = {
  killInWrite: 0,
  killAfterWrite: 0,
  brokenWrite: 0,
  lateWrite: 0,
  lostRequest: 0,
  lostAnswer: 0,
  twice: 0,
  busyRelay: 0,
};

export const rough: Faults = {
  killInWrite: 0.006,
  killAfterWrite: 0.01,
  brokenWrite: 0.004,
  lateWrite: 0.2,
  lostRequest: 0.06,
  lostAnswer: 0.08,
  twice: 0.06,
  busyRelay: 0.03,
};

export class LinkWorld {
  readonly dice: Dice;
  readonly trace = new Trace();
  readonly tally = new Tally();
  readonly timeline = new Timeline();
  readonly machines: Machine[] = [];
  readonly relays: SimulatedRelay[] = [];
  faults: Faults = rough;
  failure: Failure | undefined;
  steps = 0;
  /** Whose event runs. */
  current: Process | undefined;
  checkers: readonly LinkChecker[] = [];
  /** Seeds of identities, by their key: what opens items for the checkers. */
  readonly seeds = new Map<string, Uint8Array>();
  /** Pairs of a sender and a receiver between which something was lost that no sender sends again by itself. */
  readonly lossy = new Set<string>();
  #names = 0;

  constructor(seed: number) {
    this.dice = new Dice(seed);
  }

  get elapsedMs(): number {
    return this.timeline.elapsedMs;
  }

  calmDown(): void {
    this.faults = calm;
  }

  fail(checker: string, text: string): void {
    this.failure ??= { checker, text, step: this.steps };
  }

  /** What no use case may do: throw something that is no fault. */
  defect(by: string | undefined, error: unknown): void {
    this.fail('no defect is thrown', `${by}: ${error instanceof Error ? error.stack : String(error)}`);
  }

  later(owner: Process | undefined, label: string, ms: number, run: () => void): Event {
    return schedule(this, { owner, label, ms, run });
  }

  delayMs(): number {
    return delayMs(this.dice);
  }

  spawn(kind: ProcessKind, where: string): Process {
    this.#names += 1;
    return new Process(kind, `${where}/${kind}-${this.#names}`);
  }

  /** kill -9 */
  kill(process: Process): void {
    if (!process.alive) return;
    this.tally.count(`killed ${process.kind}`);
    this.note(process, 'killed');
    process.end();
  }

  note(owner: Process | undefined, text: string): void {
    this.trace.add(`${this.steps} ${this.timeline.elapsedMs} ${owner?.name ?? '-'} ${text}`);
  }

  committed(machine: Machine, changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.#judge((checker) => checker.onCommit?.(machine, changes));
  }

  posted(posting: Posting): void {
    this.#judge((checker) => checker.onPost?.(posting));
  }

  did(machine: Machine, deed: Deed): void {
    this.tally.count(deed.kind);
    this.#judge((checker) => checker.onDeed?.(machine, deed));
  }

  atEnd(): void {
    this.#judge((checker) => checker.atEnd?.());
  }

  #judge(show: (checker: LinkChecker) => void): void {
    try {
      for (const checker of this.checkers) show(checker);
    } catch (error) {
      this.defect('a checker', error);
    }
  }

  /** Runs until so many steps are done or time is over; stops at the first failure. */
  async run(until: { steps: number; elapsedMs: number }): Promise<void> {
    await drained();
    while (this.failure === undefined && this.steps < until.steps) {
      const event = this.timeline.next(until.elapsedMs);
      if (event === undefined) break;
      const { owner } = event;
      if (event.canceled || owner?.alive === false) continue;
      this.steps += 1;
      this.note(owner, event.label);
      this.current = owner;
      try {
        event.run();
      } catch (error) {
        this.defect(owner?.name, error);
      }
      await drained();
      this.current = undefined;
    }
    if (Number.isFinite(until.elapsedMs))
      this.timeline.elapsedMs = Math.max(this.timeline.elapsedMs, until.elapsedMs);
  }
}

/** Lets everything run that needs no time: all promises that are settled. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
