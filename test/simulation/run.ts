// One run: a world from a seed, so many steps of trouble, then quiet until everything had to be rung.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { finishedAttemptsNeverChange } from './check/attempts.ts';
import { connectionsEnd } from './check/connection.ts';
import { theCursorCoversWhatWasPrinted } from './check/cursor.ts';
import { generationsOnlyRise } from './check/generation.ts';
import { oneHandOff } from './check/hand-off.ts';
import { noMailToAnotherInbox } from './check/inbox.ts';
import { acknowledgedIsNeverLost } from './check/lost.ts';
import { noReceiptWithoutItsEvent } from './check/receipts.ts';
import { oneReservationASession } from './check/reservation.ts';
import { noRingWithoutItsCause } from './check/ring.ts';
import { whatWaitsIsRung } from './check/rung.ts';
import { remindersFollowTheSchedule } from './check/schedule.ts';
import { theSenderIsToldTheTruth } from './check/told.ts';
import { oneAnswerToWhatWaits } from './check/waiting.ts';
import type { SessionView } from './checker.ts';
import { Dice } from './dice.ts';
import { openDisk } from './disk.ts';
import { useNetwork } from './net.ts';
import { portsOf } from './ports.ts';
import { Process } from './process.ts';
import { viewOfCoverage, viewOfInbox, viewOfListener, viewOfNotifier } from './product.ts';
import type { Tally } from './tally.ts';
import { type Hooks, Town } from './town.ts';
import { Weather } from './weather.ts';
import { type Failure, World } from './world.ts';

/** The longest reservation, one more ring, and the longest wait of a process that was replaced. */
const quietMs = 420_000;

export interface Outcome {
  seed: number;
  steps: number;
  seconds: number;
  /** Of this process; what others on the machine take does not count. */
  cpuSeconds: number;
  hash: string;
  tally: Tally;
  simulatedMs: number;
  failure: Failure | undefined;
  trace: string[];
}

/** Breaks something on purpose. */
export interface Canary {
  /** The checker that must catch it, where the canary has a name of its own. */
  caughtBy?: string;
  /** How many steps it takes at most until it is caught. */
  steps?: number;
  hooks?: Hooks;
  start?(world: World, town: Town): void;
}

export async function simulate(seed: number, steps: number, canary: Canary = {}): Promise<Outcome> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const directory = mkdtempSync(path.join(memory, 'postbell-simulation-'));
  try {
    return await runIn(path.join(directory, 'postbell.db'), seed, steps, canary);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function runIn(file: string, seed: number, steps: number, canary: Canary): Promise<Outcome> {
  const still = { nowMs: () => 0, elapsedMs: () => 0, after: () => () => {} };
  const made = await openStore({ path: file, clock: still, random: new Dice(1) });
  made.close();
  const disk = openDisk(file);
  let town: Town | undefined;
  const beginNs = process.hrtime.bigint();
  const beginCpu = process.cpuUsage();
  const makers = [
    finishedAttemptsNeverChange,
    generationsOnlyRise,
    connectionsEnd,
    remindersFollowTheSchedule,
    theCursorCoversWhatWasPrinted,
    oneReservationASession,
    acknowledgedIsNeverLost,
    noReceiptWithoutItsEvent,
    noRingWithoutItsCause,
    theSenderIsToldTheTruth,
    oneHandOff,
    noMailToAnotherInbox,
    oneAnswerToWhatWaits(() => town && someViews(town)),
    whatWaitsIsRung(() => (town === undefined ? [] : reachable(town))),
  ];
  const world = new World(seed, disk, makers);
  try {
    useNetwork(world);
    town = new Town(world, canary.hooks ?? {});
    canary.start?.(world, town);
    const weather = new Weather(town);
    await world.run({ steps, elapsedMs: Number.POSITIVE_INFINITY });
    if (world.failure === undefined) await quiet(world, weather);
  } finally {
    disk.close();
  }
  const { user, system } = process.cpuUsage(beginCpu);
  return {
    seed,
    steps: world.steps,
    cpuSeconds: (user + system) / 1e6,
    seconds: Number(process.hrtime.bigint() - beginNs) / 1e9,
    hash: world.trace.hash,
    tally: world.tally,
    simulatedMs: world.timeline.elapsedMs,
    failure: world.failure,
    trace: world.trace.last(),
  };
}

async function quiet(world: World, weather: Weather): Promise<void> {
  weather.end();
  world.judges.calm();
  await world.run({ steps: Number.POSITIVE_INFINITY, elapsedMs: world.timeline.elapsedMs + quietMs });
  if (world.failure === undefined) world.judges.atEnd();
}

/** One session after another, through ports of a process that is never in trouble. */
function someViews(town: Town) {
  const { world } = town;
  const hosts = town.hosts.filter((host) => host.server !== undefined);
  const host = hosts[world.steps % Math.max(1, hosts.length)];
  if (host?.server === undefined || world.lockedUntilMs > world.timeline.elapsedMs) return undefined;
  const { session } = host.server;
  const ports = viewPorts(town);
  return {
    session,
    inbox: () => viewOfInbox(ports, session),
    notifier: () => viewOfNotifier(ports, session),
    listener: () => viewOfListener(ports, session.id),
    coverage: () => viewOfCoverage(ports, world.facts.root(session.id)),
  };
}

const views = new WeakMap<World, ReturnType<typeof portsOf>>();

function viewPorts({ world, hooks }: Town): ReturnType<typeof portsOf> {
  let ports = views.get(world);
  if (ports === undefined) {
    ports = {
      ...portsOf(world, new Process('command', 'view'), hooks.tamper, {
        life: 'immortal',
        groupCommits: false,
      }),
      random: new Dice(-1),
    };
    views.set(world, ports);
  }
  return ports;
}

/**
 * Sessions that are up with a bell. One whose host gave it a new id that was never linked is two sessions, of which one
 * may stay silent.
 */
function reachable({ hosts, world }: Town): SessionView[] {
  return hosts.flatMap(({ up, hasBell, server, ids, sessionId }) => {
    if (!up || !hasBell || !server?.process.alive) return [];
    const linked = world.facts.chain(sessionId);
    // Whoever is stopped keeps the lock of its session.
    if (hosts.some((host) => host.server?.process.paused && linked.includes(host.server.session.id)))
      return [];
    return [...ids, server.session.id].every((id) => linked.includes(id)) ? [server.session] : [];
  });
}
