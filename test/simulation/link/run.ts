// One run: a world of machines from a seed, so many steps of trouble, then quiet until everything had to arrive.

import type { Tally } from '../tally.ts';
import type { Failure } from '../world.ts';
import { answeredIsKept } from './check/kept.ts';
import { anEntryEndsForAReason } from './check/outbox.ts';
import { noReceiptWithoutItsFact } from './check/receipts.ts';
import { bothSidesAgree } from './check/settled.ts';
import { storedAtMostOnce } from './check/stored.ts';
import { nothingOfStrangers } from './check/strangers.ts';
import type { LinkChecker } from './checker.ts';
import { diskMaker, inDirectory } from './disks.ts';
import { Intruder } from './intruder.ts';
import { Machine, open } from './machine.ts';
import { Network } from './network.ts';
import { People } from './people.ts';
import type { Tamper } from './ports.ts';
import { SimulatedRelay } from './relay.ts';
import { stateOf } from './state.ts';
import { Weather } from './weather.ts';
import { LinkWorld } from './world.ts';

const minuteMs = 60_000;
/** Two of the hourly tries of what a peer has not said to be stored, and what follows of them. */
const quietMs = 150 * minuteMs;
/** People look at who asks; the last look leaves time for what follows. */
const acceptRounds = 10;
/** A link asks for lost facts two minutes after it began. */
const askedMs = 12 * minuteMs;

const makers = [
  storedAtMostOnce,
  noReceiptWithoutItsFact,
  nothingOfStrangers,
  anEntryEndsForAReason,
  answeredIsKept,
  bothSidesAgree,
];

export interface LinkOutcome {
  seed: number;
  steps: number;
  seconds: number;
  hash: string;
  tally: Tally;
  simulatedMs: number;
  failure: Failure | undefined;
  /** The last steps, and how the world stood where it failed. */
  trace: string[];
  state: string[];
}

/** Breaks something on purpose. */
export interface LinkCanary {
  tamper?: Tamper;
  start?(world: LinkWorld, network: Network): void;
  /** When everything is mended. */
  calm?(world: LinkWorld, network: Network): void;
}

export function simulateLink(seed: number, steps: number, canary: LinkCanary = {}): Promise<LinkOutcome> {
  return inDirectory((directory) => runIn(directory, seed, steps, canary));
}

async function runIn(
  directory: string,
  seed: number,
  steps: number,
  canary: LinkCanary,
): Promise<LinkOutcome> {
  const beginNs = process.hrtime.bigint();
  const world = new LinkWorld(seed);
  const network = new Network(world);
  const diskOf = await diskMaker(directory);
  let state: string[] = [];
  try {
    const people = new People(world, network);
    const weather = populate(world, network, people, { diskOf, canary });
    await world.run({ steps, elapsedMs: Number.POSITIVE_INFINITY });
    if (world.failure === undefined) await quiet(world, network, { people, weather, canary });
    if (world.failure !== undefined) state = stateOf(world);
  } finally {
    for (const { disk } of world.machines) disk.close();
  }
  return {
    seed,
    steps: world.steps,
    seconds: Number(process.hrtime.bigint() - beginNs) / 1e9,
    hash: world.trace.hash,
    tally: world.tally,
    simulatedMs: world.elapsedMs,
    failure: world.failure,
    trace: world.trace.last(),
    state,
  };
}

type DiskOf = Awaited<ReturnType<typeof diskMaker>>;

function populate(
  world: LinkWorld,
  network: Network,
  people: People,
  { diskOf, canary }: { diskOf: DiskOf; canary: LinkCanary },
): Weather {
  const { dice, machines, relays } = world;
  const intruder = new Intruder(world);
  for (let nth = 1; nth <= dice.between(1, 2); nth += 1) {
    const relay = new SimulatedRelay(world, `https://relay-${nth}.example`);
    relay.onLost = (body, queue) => {
      const header = open(world, body, queue)?.header;
      if (header !== undefined) world.lossy.add(`${header.from} ${header.to}`);
    };
    relays.push(relay);
  }
  const names = ['alice', 'bob', 'carol', 'dave'].slice(0, dice.pick([2, 2, 3, 4]));
  for (const [nth, name] of names.entries()) {
    const own = relays.filter(() => dice.chance(0.7));
    machines.push(
      new Machine(world, network, {
        name,
        disk: diskOf(name),
        seed: new Uint8Array(32).fill(nth + 1),
        relays: own.length > 0 ? own : relays,
        tamper: canary.tamper,
      }),
    );
  }
  const makeCheckers = (): LinkChecker[] =>
    makers.map((make) => {
      const checker: LinkChecker = make(world, (text) => world.fail(checker.name, text));
      return checker;
    });
  world.checkers = [
    ...makeCheckers(),
    {
      name: 'what the intruder sees',
      onPost: ({ to, queueId, body, record }) => intruder.sees({ queue: `${to}.${queueId}`, body, record }),
    },
  ];
  canary.start?.(world, network);
  for (const machine of machines) {
    machine.start();
    people.pair(machine, machines[(machines.indexOf(machine) + 1) % machines.length]);
    world.later(undefined, 'decides', 20_000, () => people.decide(machine, 'accept'));
  }
  return new Weather(world, network, people, intruder);
}

/** What is to be done by people is done: whoever waits for an answer asks again, and whoever was asked accepts. */
async function quiet(
  world: LinkWorld,
  network: Network,
  { people, weather, canary }: { people: People; weather: Weather; canary: LinkCanary },
): Promise<void> {
  const { machines } = world;
  const pass = (ms: number): Promise<void> =>
    world.run({ steps: Number.POSITIVE_INFINITY, elapsedMs: world.elapsedMs + ms });
  weather.end();
  canary.calm?.(world, network);
  await pass(5 * minuteMs);
  for (const machine of machines)
    for (const { peer_key } of machine.disk.all('SELECT peer_key FROM pair_asked'))
      people.pair(
        machine,
        machines.find(({ key }) => key === peer_key),
      );
  for (let round = 0; round < acceptRounds; round += 1) {
    await pass(quietMs / acceptRounds);
    for (const machine of machines) people.decide(machine, 'accept');
  }
  for (const machine of machines) machine.stop();
  await pass(minuteMs);
  for (const machine of machines) machine.start();
  await pass(askedMs);
  if (world.failure === undefined) world.atEnd();
}
