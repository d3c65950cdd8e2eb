// The way between a process and a relay: requests and answers are late, lost, or come twice, and a machine or a relay may be cut off
// in one direction or both. What was lost is known only by waiting.

import { setMaxListeners } from 'node:events';
import { type LeasedItem, type Relay, RelayFailure, type Signer } from '../../../src/ports/relay.ts';
import type { Process } from '../process.ts';
import type { Machine } from './machine.ts';
import type { SimulatedRelay } from './relay.ts';
import type { LinkWorld } from './world.ts';

/** How long a client waits for an answer. */
const answerMs = 30_000;
const refusedMs = 200;

type Direction = 'there' | 'back';

interface Call<T> {
  what: string;
  act(): T;
  /** Whether the same bytes may arrive once more: a relay takes a nonce only once. */
  repeats?: boolean;
  signal: AbortSignal | undefined;
}

export class Network {
  /** `<machine or origin> <direction>` of those that are cut off. */
  readonly cut = new Set<string>();
  readonly #world: LinkWorld;

  constructor(world: LinkWorld) {
    this.#world = world;
  }

  heal(): void {
    this.cut.clear();
  }

  clientAt(machine: Machine, process: Process, origin: string, signer: Signer): Relay {
    const relay = this.#world.relays.find((one) => one.origin === origin);
    if (relay === undefined) throw new Error(`no relay ${origin}`);
    return this.client(machine, process, relay, signer);
  }

  client(machine: Machine, process: Process, relay: SimulatedRelay, signer: Signer): Relay {
    const call = <T>(made: Call<T>): Promise<T> => this.#call(machine, process, relay, made);
    const own = (queue: string): void => {
      if (!queue.startsWith(`${signer.key}.`)) throw relay.refuse(403, 'forbidden');
    };
    const owned = <T>(
      what: string,
      queue: string,
      signal: AbortSignal | undefined,
      act: () => T,
    ): Promise<T> =>
      call({
        what,
        signal,
        act: () => {
          own(queue);
          return act();
        },
      });
    return {
      origin: relay.origin,
      describe: (signal) =>
        call({ what: 'describes', signal, act: () => ({ id: 'model', protocols: ['v1'], now_ms: 0 }) }),
      register: (queue, { door }, signal) =>
        owned('register', queue, signal, () => relay.register(queue, door)),
      close: (queue, { purge }, signal) => owned('close', queue, signal, () => relay.close(queue, purge)),
      post: (queue, item, signal) => {
        machine.posts(relay, queue, item);
        return call({ what: 'post', signal, repeats: true, act: () => this.#post(relay, queue, item) });
      },
      poll: (queue, { wait_ms, max }, signal) =>
        this.#poll(machine, process, relay, { queue, waitMs: wait_ms, max, signal, own }),
      settle: (queue, { ack, defer }, signal) =>
        owned('settle', queue, signal, () => relay.settle(queue, ack, defer)),
      putCard: (queue, card, signal) => owned('card', queue, signal, () => relay.putCard(queue, card)),
      card: (queue, signal) => call({ what: 'presence', signal, act: () => relay.presence(queue) }),
    };
  }

  #post(relay: SimulatedRelay, queue: string, item: Parameters<Relay['post']>[1]): { duplicate: boolean } {
    const { dice, faults } = this.#world;
    if (dice.chance(faults.busyRelay))
      throw dice.chance(0.5)
        ? relay.refuse(429, 'rate_limited', dice.below(20_000))
        : relay.refuse(503, 'store_unavailable');
    return relay.post(queue, item);
  }

  #isCut(machine: Machine, relay: SimulatedRelay, direction: Direction): boolean {
    return this.cut.has(`${machine.name} ${direction}`) || this.cut.has(`${relay.origin} ${direction}`);
  }

  #lost(machine: Machine, relay: SimulatedRelay, direction: Direction): boolean {
    const { dice, faults, tally } = this.#world;
    const chance = direction === 'there' ? faults.lostRequest : faults.lostAnswer;
    if (!this.#isCut(machine, relay, direction) && !dice.chance(chance)) return false;
    tally.count(direction === 'there' ? 'requests lost' : 'answers lost');
    return true;
  }

  /** Now and then so long that the client has given up meanwhile. */
  #travelMs(): number {
    const { dice, faults } = this.#world;
    if (faults.lostRequest > 0 && dice.chance(0.01)) return dice.between(1_000, 90_000);
    return dice.between(1, 60);
  }

  #call<T>(machine: Machine, process: Process, relay: SimulatedRelay, call: Call<T>): Promise<T> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      const end = this.#ending(process, relay, call.signal, { waitMs: answerMs, reject });
      const arrive = (first: boolean): void => {
        if (!relay.up) {
          if (first) end.after(refusedMs, () => reject(unreachable(relay)));
          return;
        }
        let outcome: { value: T } | { error: unknown };
        try {
          outcome = { value: call.act() };
        } catch (error) {
          outcome = { error };
        }
        if (!first || this.#lost(machine, relay, 'back')) return;
        end.after(this.#travelMs(), () => {
          if ('value' in outcome) resolve(outcome.value);
          else reject(outcome.error);
        });
      };
      if (this.#lost(machine, relay, 'there')) return;
      world.later(undefined, `${machine.name} ${call.what} at ${relay.origin}`, this.#travelMs(), () =>
        arrive(true),
      );
      if (call.repeats && world.dice.chance(world.faults.twice)) {
        world.tally.count('requests twice');
        world.later(undefined, `${machine.name} ${call.what} again`, this.#travelMs() * 3, () =>
          arrive(false),
        );
      }
    });
  }

  #poll(
    machine: Machine,
    process: Process,
    relay: SimulatedRelay,
    asked: {
      queue: string;
      waitMs: number;
      max: number;
      signal: AbortSignal | undefined;
      own(q: string): void;
    },
  ): Promise<{ items: LeasedItem[]; more: boolean }> {
    const { queue, max } = asked;
    const world = this.#world;
    return new Promise((resolve, reject) => {
      let drop = (): void => {};
      let stays = (): void => {};
      const end = this.#ending(process, relay, asked.signal, {
        waitMs: asked.waitMs + answerMs,
        reject: (error) => {
          // The relay sees that nobody is there any more, or finds out with what it sends next.
          stays();
          if (world.dice.chance(0.5)) drop();
          reject(error);
        },
      });
      const answer = (items: LeasedItem[] | undefined): void => {
        stays();
        if (items === undefined) end.after(refusedMs, () => reject(unreachable(relay)));
        else if (!this.#lost(machine, relay, 'back'))
          end.after(this.#travelMs(), () => resolve({ items, more: false }));
      };
      if (this.#lost(machine, relay, 'there')) return;
      world.later(undefined, `${machine.name} polls at ${relay.origin}`, this.#travelMs(), () => {
        if (!relay.up) return answer(undefined);
        if (!process.alive) return;
        try {
          asked.own(queue);
          stays = process.atDeath(() => world.dice.chance(0.5) && drop());
          const open = relay.poll({ queue, max, answer });
          drop = open.drop;
          world.later(undefined, 'poll ends', asked.waitMs, open.end);
        } catch (error) {
          end.after(this.#travelMs(), () => reject(error));
        }
      });
    });
  }

  /** The first thing that ends the call at its client: what comes back, its patience, or its own abort. */
  #ending(
    process: Process,
    relay: SimulatedRelay,
    signal: AbortSignal | undefined,
    { waitMs, reject }: { waitMs: number; reject(error: unknown): void },
  ): { after(ms: number, then: () => void): void } {
    let done = false;
    const once = (then: () => void): void => {
      if (done) return;
      done = true;
      patience.canceled = true;
      signal?.removeEventListener('abort', onAbort);
      then();
    };
    const onAbort = (): void => once(() => reject(unreachable(relay)));
    const patience = this.#world.later(process, 'no answer', waitMs, () =>
      once(() => reject(unreachable(relay))),
    );
    if (signal !== undefined) setMaxListeners(0, signal);
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted) onAbort();
    return { after: (ms, then) => void this.#world.later(process, 'answered', ms, () => once(then)) };
  }
}

const unreachable = ({ origin }: SimulatedRelay): RelayFailure =>
  new RelayFailure('unreachable', origin, `the relay ${origin} cannot be reached`);
