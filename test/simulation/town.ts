// Who lives on the simulated machine: hosts with their sessions, a router, and commands that come and go.

import type { Host } from './host.ts';
import type { MoodName } from './mood.ts';
import { portsOf, type Tamper } from './ports.ts';
import type { Process } from './process.ts';
import {
  isAnnounced,
  type RingItem,
  type RingOutcome,
  runRouter,
  type Scope,
  type SendRequest,
} from './product.ts';
import type { World } from './world.ts';

export interface Hooks {
  tamper?: Tamper;
  /** Answers in place of a bell, or leaves it to ring. */
  ring?(item: RingItem): RingOutcome | undefined;
  /** How a host takes a ring badly, whenever it does. */
  mood?: MoodName;
}

export class Town {
  readonly world: World;
  readonly hooks: Hooks;
  readonly hosts: Host[] = [];
  readonly projects = ['shop', 'mill'];
  readonly principals = ['bob', 'carol'];
  /** Sends that were tried, by their key; the newest last. */
  readonly tried = new Map<string, SendRequest>();
  /** Messages that a send was answered for. */
  readonly known: Scope[] = [];
  /** Tasks that are told of, as the letters that began them. */
  readonly #tasks: SendRequest[] = [];
  #router: { process: Process; close(): Promise<void> } | undefined;
  #sessions = 0;
  #pids = 100;
  #keys = 0;

  constructor(world: World, hooks: Hooks) {
    this.world = world;
    this.hooks = hooks;
  }

  newSession(): string {
    this.#sessions += 1;
    return `s${this.#sessions}`;
  }

  /** Some session that was ever there. */
  someSession(): string {
    return `s${this.world.dice.between(Math.max(1, this.#sessions - 12), Math.max(1, this.#sessions))}`;
  }

  /** One of the last tasks, or a new one. */
  someTask(begin: () => SendRequest): SendRequest {
    const { dice } = this.world;
    if (this.#tasks.length > 0 && dice.chance(0.85)) return dice.pick(this.#tasks);
    const task = begin();
    this.#tasks.push(task);
    if (this.#tasks.length > 6) this.#tasks.shift();
    return task;
  }

  newPid(): number {
    this.#pids += 1;
    return this.#pids;
  }

  newKey(): string {
    this.#keys += 1;
    return `key-${this.#keys}`;
  }

  /** Messages of anybody, as a confused agent may name them. */
  someKnown(count: number): Scope[] {
    const recent = this.known.slice(-40);
    if (recent.length === 0) return [];
    return Array.from({ length: count }, () => this.world.dice.pick(recent));
  }

  /** `router stop`: every registration is ended in order. */
  stopRouter(): void {
    const router = this.#router;
    if (router === undefined || !router.process.alive) return;
    const { process, close } = router;
    this.world.tally.count('router stopped in order');
    this.world.later(process, 'stops', 0, () => {
      close().then(
        () => process.end(),
        () => process.end(),
      );
    });
  }

  /** Starts the installed router where none runs. */
  startRouter(): void {
    const { world } = this;
    if (world.running('router').length > 0) return;
    const process = world.spawn('router');
    const ports = portsOf(world, process, this.hooks.tamper, { life: 'mortal', groupCommits: true });
    const fault = (error: unknown): void => {
      if (!isAnnounced(error)) world.defect(process, error);
    };
    world.later(process, 'router starts', world.delayMs() + 50, () => {
      runRouter(ports, process, { fault, stop: () => {} }).then(
        (router) => {
          this.#router = { process, close: () => router.close() };
          world.judges.deed({ kind: 'listening', router: process.name }, process);
        },
        (error: unknown) => {
          fault(error);
          process.end();
        },
      );
    });
  }
}
