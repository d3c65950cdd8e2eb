import type { Clock } from '../../ports/clock.ts';

/** Sleep that others may cut short. A ring while nobody sleeps ends the next sleep at once. */
export class Alarm {
  readonly #clock: Clock;
  #rung = false;
  #ended = false;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Until `ms` have passed, it rings, or it ended. */
  sleep(ms: number): Promise<void> {
    if (this.#rung || this.#ended) {
      this.#rung = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, () => this.#wake());
      this.#wake = () => {
        cancel();
        this.#wake = () => {};
        this.#rung = false;
        resolve();
      };
    });
  }

  ring(): void {
    this.#rung = true;
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }
}
