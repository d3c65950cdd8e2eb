// How each own relay stands, as people are told: by its queues of this machine, and by its clock. What changes is one line of the log.

import type { RelayFailure } from '../../ports/relay.ts';
import type { Via } from '../../protocol/gate.ts';
import type { LinkGround } from './ground.ts';

/** What is wrong at a relay, since when; shown, and logged on change only. */
export interface RelayState {
  origin: string;
  failure: string | undefined;
  since: string;
  /** Where its clock and this machine's are more than a minute apart. */
  clock?: string;
}

export class RelayStates {
  readonly #ground: Pick<LinkGround, 'log' | 'clock'>;
  readonly #aheadMs: (origin: string) => number;
  readonly #states = new Map<string, RelayState>();
  /** Of each relay, what fails at which queue. */
  readonly #failing = new Map<string, Map<Via, string>>();

  /** @param aheadMs by how much the relay's clock is ahead of this machine's */
  constructor(ground: Pick<LinkGround, 'log' | 'clock'>, aheadMs: (origin: string) => number) {
    this.#ground = ground;
    this.#aheadMs = aheadMs;
  }

  all(): RelayState[] {
    return [...this.#states.values()];
  }

  /** Its queues are others from now on. */
  begin(): void {
    this.#failing.clear();
  }

  /** A relay answers where it does for every queue: one that it refuses is not forgotten for another that it serves. */
  queueIs(origin: string, via: Via, failure: RelayFailure | undefined): void {
    const failing = this.#failing.get(origin) ?? new Map<Via, string>();
    this.#failing.set(origin, failing);
    if (failure === undefined) failing.delete(via);
    else failing.set(via, failure.message);
    // What is said already stays said while it holds for one of them.
    const said = this.#states.get(origin)?.failure;
    const still = [...failing.values()].find((one) => one === said);
    this.#relayIs(origin, still ?? failing.get('device') ?? failing.get('door'));
  }

  #relayIs(origin: string, failure: string | undefined): void {
    const { log, clock } = this.#ground;
    const before = this.#states.get(origin);
    const off = clockWords(origin, this.#aheadMs(origin));
    if (off !== undefined && before?.clock === undefined) log.warn('clock', { relay: origin, why: off });
    if (off === undefined && before?.clock !== undefined)
      log.info('clock', { relay: origin, why: 'the clocks agree again' });
    const since =
      before !== undefined && before.failure === failure
        ? before.since
        : new Date(clock.nowMs()).toISOString();
    this.#states.set(origin, { origin, failure, since, ...(off !== undefined && { clock: off }) });
    if (before?.failure === failure) return;
    if (failure !== undefined) log.warn('relay', { relay: origin, why: failure });
    else log.info('relay', { relay: origin, why: 'answers again' });
  }
}

/** As a relay accepts the time of a request, and a peer that of what is signed in the future. */
const clockOffMs = 60_000;

function clockWords(origin: string, aheadMs: number): string | undefined {
  if (Math.abs(aheadMs) <= clockOffMs) return undefined;
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const which = aheadMs > 0 ? 'behind' : 'ahead of';
  return `this machine's clock is about ${minutes} min ${which} that of the relay ${origin}; set the one that is wrong: peers refuse what is signed more than a minute ahead of their time, or a day behind it`;
}
