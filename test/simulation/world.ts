// One simulated machine: its time, its processes, its disk. Nothing happens here but by events of the timeline, and
// every choice is drawn from the dice: the same seed gives the same history.

import type { Lock } from '../../src/ports/lock.ts';
import type { MakeChecker, SessionView } from './checker.ts';
import { count } from './counted.ts';
import { Dice } from './dice.ts';
import type { Disk, Fate } from './disk.ts';
import { type Delivery, Facts } from './facts.ts';
import { Judges } from './judges.ts';
import type { SimulatedSocket } from './net.ts';
import type { Network } from './network.ts';
import { Process, type ProcessKind } from './process.ts';
import { Tally } from './tally.ts';
import { delayMs, type Event, schedule, Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import { Watchers } from './watchers.ts';

/** Steps between two looks of the checkers that compare whole inboxes. */
const lookSteps = 64;

const startMs = Date.parse('2026-03-01T12:00:00.000Z');

/** How often things go wrong; all zero once the world is calm. */
export interface Faults {
  killInWrite: number;
  killAfterWrite: number;
  brokenWrite: number;
  lostTouch: number;
  badRing: number;
  lateWrite: number;
}

const calm: Faults = {
  killInWrite: 0,
  killAfterWrite: 0,
  brokenWrite: 0,
  lostTouch: 0,
  badRing: 0,
  lateWrite: 0,
};

export const rough: Faults = {
  killInWrite: 0.004,
  killAfterWrite: 0.004,
  brokenWrite: 0.003,
  lostTouch: 0.02,
  badRing: 0.15,
  lateWrite: 0.25,
};

export interface Failure {
  checker: string;
  text: string;
  step: number;
}

export class World implements Network {
  readonly dice: Dice;
  readonly disk: Disk;
  readonly facts = new Facts(() => this.nowMs());
  readonly trace = new Trace();
  readonly tally = new Tally();
  readonly judges: Judges;
  readonly timeline = new Timeline();
  faults: Faults = rough;
  failure: Failure | undefined;
  server: { owner: Process; accept(socket: SimulatedSocket): void } | undefined;
  steps = 0;
  /** Whose event runs. */
  current: Process | undefined;
  /** Commits so far, and of whom. */
  commits = 0;
  readonly commitsBy = new Map<Process, number>();
  /** Until then another program holds the store's lock. */
  lockedUntilMs = 0;
  #setByMs = 0;
  #names = 0;
  readonly #processes = new Map<string, Process>();
  readonly #watchers = new Watchers(this);
  readonly #locks = new Map<string, Process>();
  /** Ids that name one session, by each of them. */
  readonly lineages = new Map<string, Set<string>>();
  /** By each of its ids: a session as its host has it. */
  readonly sessions = new Map<string, SessionView>();
  /** Doubles what a router writes: a canary's way in. */
  onWrite: (text: string) => string[] = (text) => [text];

  constructor(seed: number, disk: Disk, makers: readonly MakeChecker[]) {
    this.dice = new Dice(seed);
    this.disk = disk;
    const sight = {
      facts: this.facts,
      rows: (sql: string) => disk.all(sql),
      nowMs: () => this.nowMs(),
      sessionNamed: (id: string) => this.sessions.get(id),
      mayRead: (session: SessionView, delivery: Delivery) => this.#mayRead(session, delivery),
    };
    this.judges = new Judges(makers, sight, (checker, text) => this.fail(checker, text));
    disk.onCommit = (changes) => {
      this.commits += 1;
      const by = this.current;
      if (by !== undefined) this.commitsBy.set(by, (this.commitsBy.get(by) ?? 0) + 1);
      try {
        count(this.tally, changes, by);
        this.judges.commit(changes, by);
      } catch (error) {
        this.defect(undefined, error);
      }
    };
    disk.fate = () => this.#fate();
    disk.locked = (verb) =>
      this.lockedUntilMs > this.timeline.elapsedMs && (verb === 'writing' || this.dice.chance(0.1));
  }

  nowMs(): number {
    return startMs + this.#setByMs + this.timeline.elapsedMs;
  }

  /** Somebody sets the wall clock. */
  setClock(byMs: number): void {
    this.#setByMs += byMs;
  }

  get clockSetByMs(): number {
    return this.#setByMs;
  }

  calmDown(): void {
    this.faults = calm;
    this.lockedUntilMs = 0;
    for (const process of this.#processes.values()) this.resume(process);
  }

  fail(checker: string, text: string): void {
    this.failure ??= { checker, text, step: this.steps };
  }

  later(owner: Process | undefined, label: string, ms: number, run: () => void): Event {
    return schedule(this, { owner, label, ms, run });
  }

  delayMs(): number {
    return delayMs(this.dice);
  }

  spawn(kind: ProcessKind): Process {
    this.#names += 1;
    const process = new Process(kind, `${kind}-${this.#names}`);
    this.#processes.set(process.name, process);
    this.tally.count(`started ${kind}`);
    process.atDeath(() => this.#processes.delete(process.name));
    return process;
  }

  /** kill -9 */
  kill(process: Process): void {
    if (!process.alive) return;
    this.tally.count(`killed ${process.kind}`);
    this.note(process, 'killed');
    process.end();
  }

  pause(process: Process): void {
    this.tally.count(`stopped ${process.kind}`);
    this.note(process, 'stopped');
    process.paused = true;
  }

  resume(process: Process): void {
    if (!process.paused) return;
    process.paused = false;
    for (const event of process.parked.splice(0))
      this.timeline.add({ ...event, dueMs: this.timeline.elapsedMs });
  }

  running(kind?: ProcessKind): Process[] {
    const all = [...this.#processes.values()];
    return kind === undefined ? all : all.filter((process) => process.kind === kind);
  }

  processAt(path: string): Process {
    const name = path.slice(path.lastIndexOf('/') + 1).replace(/^~/, '');
    return this.#processes.get(name) ?? new Process('command', name);
  }

  touch(): void {
    if (this.dice.chance(this.faults.lostTouch)) {
      this.tally.count('touches lost');
      return;
    }
    this.#watchers.touch();
  }

  watch(owner: Process, onTouch: () => void): () => void {
    return this.#watchers.watch(owner, onTouch);
  }

  /** The time on each lock file, as the file system keeps it. */
  readonly stamps = new Map<string, number>();

  isHeld(name: string): boolean {
    return this.#locks.has(name);
  }

  tryTake(owner: Process, name: string): Lock | undefined {
    if (this.#locks.has(name)) return undefined;
    this.#locks.set(name, owner);
    if (!this.stamps.has(name)) this.stamps.set(name, this.nowMs());
    const free = (): void => {
      if (this.#locks.get(name) === owner) this.#locks.delete(name);
    };
    const stays = owner.atDeath(free);
    return {
      held: () => this.#locks.get(name) === owner,
      release: () => {
        stays();
        free();
      },
    };
  }

  /** The world's own event, seen in the trace. */
  note(owner: Process | undefined, text: string): void {
    this.trace.add(`${this.steps} ${this.timeline.elapsedMs} ${owner?.name ?? '-'} ${text}`);
  }

  /** Runs until so many steps are done or time is over; stops at the first failure. */
  async run(until: { steps: number; elapsedMs: number }): Promise<void> {
    while (this.failure === undefined && this.steps < until.steps) {
      const event = this.timeline.next(until.elapsedMs);
      if (event === undefined) return;
      const { owner } = event;
      if (event.canceled || owner?.alive === false) continue;
      if (owner?.paused) {
        owner.parked.push(event);
        continue;
      }
      this.steps += 1;
      this.note(owner, event.label);
      this.current = owner;
      try {
        event.run();
      } catch (error) {
        this.defect(owner, error);
      }
      await drained();
      this.current = undefined;
      if (this.steps % lookSteps === 0) await this.#look();
    }
  }

  async #look(): Promise<void> {
    try {
      await this.judges.look();
    } catch (error) {
      this.defect(undefined, error);
    }
  }

  /** What no use case may do: throw something that is no fault. */
  defect(process: Process | undefined, error: unknown): void {
    this.fail(
      'no defect is thrown',
      `${process?.name}: ${error instanceof Error ? error.stack : String(error)}`,
    );
  }

  lineage(id: string): Set<string> {
    let ids = this.lineages.get(id);
    if (ids === undefined) {
      ids = new Set([id]);
      this.lineages.set(id, ids);
    }
    return ids;
  }

  /** Of the transaction that begins now; those of nobody are the simulation's own. */
  #fate(): Fate {
    const { dice, faults, current } = this;
    if (current === undefined) return { kind: 'none' };
    if (dice.chance(faults.killInWrite * deadliness(current)))
      return { kind: 'cut', atStatement: dice.between(1, 12) };
    if (dice.chance(faults.brokenWrite)) return { kind: 'broken', atStatement: dice.between(1, 12) };
    return { kind: 'none' };
  }

  #mayRead({ id, principal, project }: SessionView, delivery: Delivery): boolean {
    const ids = this.lineage(id);
    if (delivery.project !== project) return false;
    if (delivery.toSession) return ids.has(delivery.recipient);
    if (delivery.intended !== undefined) return ids.has(delivery.intended);
    const scoped = /^claude-session-(.+)$/.exec(delivery.recipient)?.[1];
    return delivery.recipient === principal || (scoped !== undefined && ids.has(scoped));
  }
}

/** A router writes for all: as mortal as the others, it would hardly ever serve. */
export const deadliness = ({ kind }: Process): number => (kind === 'router' ? 0.25 : 1);

/** Lets everything run that needs no time: all promises that are settled. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
