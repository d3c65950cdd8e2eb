// What this host has accepted: a delivery that is handed over again is answered as before, and the agent does not see
// it twice.

import type { ErrorCode } from '../protocol/errors.ts';
import type { DeliverFrame } from '../protocol/frames.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';

export interface Accepted {
  content: 'notice' | 'full';
  receipt: Json;
}

/** undefined: no answer may be given. */
export type Outcome = Accepted | { failure_code: ErrorCode } | undefined;

export class Taken {
  readonly #take: (handOff: DeliverFrame) => Promise<Outcome>;
  /** By delivery, the oldest first. */
  readonly #accepted = new Map<string, Accepted>();
  /** The last hand-off of each delivery that the host has not answered yet. */
  readonly #running = new Map<string, Promise<Outcome>>();

  constructor(take: (handOff: DeliverFrame) => Promise<Outcome>) {
    this.#take = take;
  }

  /** One hand-off of a delivery at a time: one that comes meanwhile is asked only if this one was not accepted. */
  answer(handOff: DeliverFrame): Promise<Outcome> {
    const { delivery_id } = handOff;
    const before = this.#running.get(delivery_id) ?? Promise.resolve();
    const asked = before.then(
      () => this.#ask(handOff),
      () => this.#ask(handOff),
    );
    this.#running.set(delivery_id, asked);
    return asked.finally(() => {
      if (this.#running.get(delivery_id) === asked) this.#running.delete(delivery_id);
    });
  }

  async #ask(handOff: DeliverFrame): Promise<Outcome> {
    const { delivery_id } = handOff;
    const outcome = this.#accepted.get(delivery_id) ?? (await this.#take(handOff));
    if (outcome !== undefined && 'receipt' in outcome) this.#remember(delivery_id, outcome);
    return outcome;
  }

  #remember(deliveryId: string, accepted: Accepted): void {
    this.#accepted.delete(deliveryId);
    this.#accepted.set(deliveryId, accepted);
    const [oldest] = this.#accepted.keys();
    if (this.#accepted.size > limits.acceptedRemembered && oldest !== undefined)
      this.#accepted.delete(oldest);
  }
}
