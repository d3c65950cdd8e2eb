// What goes wrong around the machines, and that people do things: drawn from the dice, one thing after another.

import { Refusal } from '../../../src/protocol/errors.ts';
import type { Intruder } from './intruder.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { People } from './people.ts';
import type { LinkWorld } from './world.ts';

const minuteMs = 60_000;
const hourMs = 3_600_000;

export class Weather {
  readonly #world: LinkWorld;
  readonly #network: Network;
  readonly #people: People;
  readonly #intruder: Intruder;
  #over = false;

  constructor(world: LinkWorld, network: Network, people: People, intruder: Intruder) {
    this.#world = world;
    this.#network = network;
    this.#people = people;
    this.#intruder = intruder;
    this.#repeat('a deed', 20_000, () => this.#people.act());
    this.#repeat('trouble', 2 * minuteMs, () => this.#trouble());
    this.#repeat('an intruder', 90_000, () => this.#intruder.act());
    this.#repeat('routers', minuteMs, () => this.#restart());
  }

  /** Everything is mended; clocks agree within half a minute. */
  end(): void {
    const { dice, machines, relays } = this.#world;
    this.#over = true;
    this.#world.calmDown();
    this.#network.heal();
    for (const relay of relays) relay.up = true;
    for (const machine of machines) {
      machine.skewMs = dice.between(-25_000, 25_000);
      machine.policyFault = undefined;
      machine.start();
    }
  }

  #repeat(label: string, everyMs: number, then: () => void): void {
    const { dice } = this.#world;
    this.#world.later(undefined, label, dice.below(2 * everyMs), () => {
      if (this.#over) return;
      then();
      this.#repeat(label, everyMs, then);
    });
  }

  /** What is not running is started again, mostly soon. */
  #restart(): void {
    const { dice, machines } = this.#world;
    for (const machine of machines) if (machine.router === undefined && dice.chance(0.6)) machine.start();
  }

  #trouble(): void {
    const { dice, machines, relays } = this.#world;
    const machine = dice.pick(machines);
    const relay = dice.pick(relays);
    const troubles = {
      'kill router': 10,
      'stop router': 5,
      'cut machine': 8,
      'cut relay': 5,
      'restart relay': 5,
      'wipe relay': 2,
      'relay down': 3,
      'set clock': 6,
      'edit policy': 4,
      'all asleep': 2,
    } as const;
    const trouble = dice.weighted<keyof typeof troubles>(troubles);
    this.#world.tally.count(trouble);
    this.#world.note(undefined, trouble);
    if (trouble === 'kill router' && machine.router !== undefined) this.#world.kill(machine.router.process);
    if (trouble === 'stop router') machine.stop();
    if (trouble === 'cut machine') this.#cut(machine.name);
    if (trouble === 'cut relay') this.#cut(relay.origin);
    if (trouble === 'restart relay') relay.restart();
    if (trouble === 'wipe relay') relay.wipe();
    if (trouble === 'set clock') this.#setClock(machine);
    if (trouble === 'all asleep') this.#sleep();
    if (trouble === 'relay down') {
      relay.up = false;
      relay.restart();
      this.#soon('relay up', 10 * minuteMs, () => {
        relay.up = true;
      });
    }
    if (trouble === 'edit policy') {
      machine.policyFault = new Refusal('store_unreadable', 'half written');
      this.#soon('policy saved', minuteMs, () => {
        machine.policyFault = undefined;
      });
    }
  }

  #soon(label: string, aboutMs: number, then: () => void): void {
    this.#world.later(undefined, label, this.#world.dice.below(2 * aboutMs), () => !this.#over && then());
  }

  #cut(name: string): void {
    const { dice } = this.#world;
    const { cut } = this.#network;
    const directions = dice.pick([['there'], ['back'], ['there', 'back']] as const);
    for (const direction of directions) cut.add(`${name} ${direction}`);
    this.#soon('healed', 15 * minuteMs, () => {
      for (const direction of directions) cut.delete(`${name} ${direction}`);
    });
  }

  /** Within what is let pass, beyond it, and beyond a day; and back. */
  #setClock(machine: Machine): void {
    const { dice } = this.#world;
    const most = dice.pick([0, 25_000, 25_000, 10 * minuteMs, 26 * hourMs]);
    machine.skewMs = dice.between(-most, most);
    this.#soon('clock mended', 30 * minuteMs, () => {
      machine.skewMs = dice.between(-25_000, 25_000);
    });
  }

  /** Nobody is there for hours or days, and what relays keep gets old. */
  #sleep(): void {
    const { dice, machines, timeline } = this.#world;
    for (const { router } of machines) if (router !== undefined) this.#world.kill(router.process);
    timeline.elapsedMs += dice.pick([2, 23, 25, 70, 170]) * hourMs;
  }
}
