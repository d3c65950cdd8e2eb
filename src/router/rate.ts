// How many frames a client may send in any 60 s.

import type { Clock } from '../ports/clock.ts';
import { limits } from '../protocol/limits.ts';

const windowMs = 60_000;

export class FrameRate {
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  /** When the frames of the last 60 s were taken, oldest first. */
  #takenMs: number[] = [];

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock;
  }

  /** Counts one frame; false where it is one too many, which is not counted. */
  take(): boolean {
    const nowMs = this.#clock.elapsedMs();
    this.#takenMs = this.#takenMs.filter((takenMs) => nowMs - takenMs < windowMs);
    if (this.#takenMs.length >= limits.framesPerMinuteMax) return false;
    this.#takenMs.push(nowMs);
    return true;
  }
}
