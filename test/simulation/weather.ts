// What befalls the machine: mail, prompts, deaths, stops, clocks that are set, stores that are locked. One thing after
// another, until the world is calmed down.

import { letterToSend, otherCommand, sendBy, sendCommand } from './commands.ts';
import { Host } from './host.ts';
import type { Process, ProcessKind } from './process.ts';
import { callsOf } from './product.ts';
import type { Town } from './town.ts';

const dayMs = 86_400_000;
const hostsMax = 7;

const weights = {
  send: 400,
  'send from a session': 120,
  prompt: 200,
  call: 160,
  clear: 12,
  'new host': 20,
  'host dies': 8,
  'server dies': 14,
  'server ends': 8,
  'server is replaced': 8,
  'server starts': 40,
  'listener dies': 14,
  'listener starts': 20,
  'command dies': 12,
  'hook dies': 5,
  'router dies': 4,
  'router stops': 3,
  'router starts': 30,
  stop: 16,
  'clock is set': 4,
  'store is locked': 5,
  'nothing for long': 8,
} as const;

type Happening = keyof typeof weights;

export class Weather {
  readonly #town: Town;
  #over = false;

  constructor(town: Town) {
    this.#town = town;
    for (let count = 0; count < 4; count += 1) this.#newHost();
    town.startRouter();
    this.#next(100);
  }

  /** Nothing more befalls; what is down comes up again, and mail is left to wait. */
  end(): void {
    this.#over = true;
    const { world, hosts } = this.#town;
    world.calmDown();
    if (world.dice.chance(0.5)) this.#setClock();
    const stopped = world.dice.chance(0.3) ? world.dice.pick(hosts) : undefined;
    for (const host of hosts) {
      host.idle = true;
      if (!host.server?.process.alive) host.startServer();
      host.startListener();
    }
    if (stopped?.server?.process.alive) world.pause(stopped.server.process);
  }

  #next(ms: number): void {
    const { world } = this.#town;
    world.later(undefined, 'weather', ms, () => {
      if (this.#over) return;
      const happening = world.dice.weighted(weights);
      world.note(undefined, happening);
      this.#next(this.#befall(happening));
    });
  }

  /** @returns after how long something else befalls */
  #befall(happening: Happening): number {
    const { dice } = this.#town.world;
    this.#act(happening);
    if (happening !== 'nothing for long') return dice.below(200);
    return dice.chance(0.2) ? dice.between(60_000, 300_000) : dice.between(1_000, 40_000);
  }

  #act(happening: Happening): void {
    const town = this.#town;
    const { world } = town;
    const host = town.hosts.length > 0 ? world.dice.pick(town.hosts) : undefined;
    const acts: Partial<Record<Happening, () => void>> = {
      send: () => sendCommand(town),
      'send from a session': () => this.#sendFrom(host),
      prompt: () => host?.prompt(),
      call: () => otherCommand(town),
      clear: () => host?.clear(),
      'new host': () => this.#newHost(),
      'host dies': () => this.#hostDies(host),
      'server is replaced': () => host?.replaceServer(),
      'server ends': () => host?.endServer(),
      'server starts': () => host?.startServer(),
      'listener starts': () => host?.startListener(),
      'hook dies': () => this.#hookDies(host),
      'router stops': () => town.stopRouter(),
      'router starts': () => town.startRouter(),
      stop: () => this.#stop(this.#someone()),
      'clock is set': () => this.#setClock(),
      'store is locked': () => this.#lockStore(),
    };
    const dies = /^(.+) dies$/.exec(happening)?.[1] as ProcessKind | undefined;
    const act = acts[happening];
    act?.();
    const victim = dies && act === undefined ? this.#someone(dies) : undefined;
    if (victim !== undefined) world.kill(victim);
  }

  #someone(kind?: ProcessKind): Process | undefined {
    const { world } = this.#town;
    const running = world.running(kind);
    return running.length > 0 ? world.dice.pick(running) : undefined;
  }

  /** Stopped past its lease, now and then. */
  #stop(process: Process | undefined): void {
    if (process === undefined || process.paused) return;
    const { world } = this.#town;
    world.pause(process);
    const ms = world.dice.chance(0.3) ? world.dice.between(20_000, 250_000) : world.dice.between(100, 6_000);
    world.later(undefined, `${process.name} goes on`, ms, () => world.resume(process));
  }

  #setClock(): void {
    const { world } = this.#town;
    const { dice } = world;
    world.tally.count('clock set');
    const byMs = dice.chance(0.5) ? dice.between(1, 120_000) : dice.between(120_000, dayMs);
    const back = world.clockSetByMs > dayMs || (world.clockSetByMs > -dayMs && dice.chance(0.5));
    world.setClock(back ? -byMs : byMs);
  }

  #lockStore(): void {
    const { world } = this.#town;
    world.tally.count('store locked');
    // Long ones are seldom: all who wait try again every few milliseconds, and that is all that happens.
    const ms = world.dice.chance(0.08) ? world.dice.between(4_000, 9_000) : world.dice.between(5, 1_500);
    world.lockedUntilMs = world.timeline.elapsedMs + ms;
  }

  #newHost(): void {
    const { hosts, world, ...town } = this.#town;
    const { dice } = world;
    if (hosts.length >= hostsMax) return;
    const twin = hosts.length > 0 && dice.chance(0.15) ? dice.pick(hosts) : undefined;
    const project = twin?.project ?? dice.pick(town.projects);
    const declared =
      twin === undefined ? (dice.chance(0.6) ? dice.pick(town.principals) : undefined) : twin.declared;
    const gone = this.#gone.length > 0 && dice.chance(0.5) ? this.#gone.pop() : undefined;
    if (gone !== undefined && twin === undefined) {
      world.tally.count('session resumed');
      hosts.push(new Host(this.#town, gone.project, gone.declared, gone.sessionId, gone.hasBell));
      return;
    }
    if (twin !== undefined) world.tally.count('session opened twice');
    const id = twin?.sessionId ?? this.#town.newSession();
    hosts.push(new Host(this.#town, project, declared, id, dice.chance(0.85)));
  }

  readonly #gone: Host[] = [];

  #hostDies(host: Host | undefined): void {
    const { hosts, world } = this.#town;
    if (host === undefined || hosts.length <= 2) return;
    world.tally.count('killed host');
    host.die();
    hosts.splice(hosts.indexOf(host), 1);
    this.#gone.push(host);
  }

  /** Hooks live for a moment only. */
  #hookDies(host: Host | undefined): void {
    const { world } = this.#town;
    host?.clear();
    world.later(undefined, 'hook dies', world.dice.below(3), () => {
      const hook = this.#someone('hook');
      if (hook !== undefined) world.kill(hook);
    });
  }

  #sendFrom(host: Host | undefined): void {
    const server = host?.server;
    if (server?.server === undefined || !server.process.alive) return;
    const { desk, caller } = server.server;
    const { process } = server;
    const letter = letterToSend(this.#town);
    this.#town.world.later(process, `sends ${letter.idempotency_key} to ${letter.recipient}`, 0, () => {
      Promise.resolve()
        .then(() => sendBy(this.#town, callsOf(desk, caller()), process, letter))
        .catch((error: unknown) => host?.faulted(process, error));
    });
  }
}
