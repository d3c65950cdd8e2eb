// One queue of this account at one relay: it is registered, waited at, and what it holds goes through the gate. Only what was committed
// or refused for good is settled; what cannot be kept now is left there for later.

import type { Admitted, Gate, Verdict } from '../../peers/admit.ts';
import type { Arrival } from '../../peers/inspect.ts';
import type { LeasedItem, Relay, RelayFailure } from '../../ports/relay.ts';
import { describeError } from '../../protocol/errors.ts';
import type { Via } from '../../protocol/gate.ts';
import type { Message } from '../../protocol/message.ts';
import { Alarm } from './alarm.ts';
import { isFailure, type LinkGround } from './ground.ts';

const waitMs = 25_000;
const batch = 64;
const firstRetryMs = 2_000;
const longestRetryMs = 60_000;
/** An item that the program itself fails at is left alone for so long. */
const poisonS = 3_600;
const lastWordMs = 1_000;
const hastyMax = 3;

export interface DrainOptions {
  relay: Relay;
  queue: string;
  queueId: string;
  via: Via;
  gate: Pick<Gate, 'admit'>;
  /** Told of what was stored, to ring for it. */
  onStored(messages: readonly Message[]): void;
  /** Told when the queue can be drained, and when not. */
  onState(failure: RelayFailure | undefined): void;
}

export class Drain {
  readonly #ground: LinkGround;
  readonly #options: DrainOptions;
  readonly #alarm: Alarm;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  #settling: Promise<unknown> = Promise.resolve();
  /** How often in a row a poll came back at once with nothing. */
  #hasty = 0;
  /** After a failure the relay is asked without waiting: whether it answers again is known at once. */
  #failing = false;

  constructor(ground: LinkGround, options: DrainOptions) {
    this.#ground = ground;
    this.#options = options;
    this.#alarm = new Alarm(ground.clock);
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#alarm.end();
    // What is committed here is worth a last word to the relay; one that does not answer gets the items settled when they come again.
    const cancel = this.#ground.clock.after(lastWordMs, () => this.#abort.abort());
    await this.#settling.catch(() => {});
    cancel();
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let retryMs = firstRetryMs;
    let registered = false;
    while (!this.#alarm.ended) {
      try {
        if (!registered) await this.#register();
        registered = true;
        await this.#once();
        retryMs = firstRetryMs;
        this.#failing = false;
        this.#options.onState(undefined);
      } catch (error) {
        if (this.#alarm.ended) return;
        registered = registered && !(isFailure(error) && error.queueUnknown);
        this.#failing = true;
        this.#failed(error);
        await this.#alarm.sleep(Math.max(retryMs, isFailure(error) ? (error.retryAfterMs ?? 0) : 0));
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    }
  }

  async #register(): Promise<void> {
    const { relay, queue, via } = this.#options;
    await relay.register(queue, { door: via === 'door' }, this.#abort.signal);
  }

  #failed(error: unknown): void {
    if (isFailure(error)) this.#options.onState(error);
    else this.#ground.log.warn('drain failed', { code: describeError(error).code });
  }

  /**
   * What was committed is settled while the next is waited for. A settlement that failed is said once, with the next poll: the relay
   * delivers those items again, and what has come meanwhile is looked at all the same.
   */
  async #once(): Promise<void> {
    const { relay, queue } = this.#options;
    const before = this.#settling;
    const wait_ms = this.#failing ? 0 : waitMs;
    const begunMs = this.#ground.clock.elapsedMs();
    const { items } = await relay.poll(queue, { wait_ms, max: batch }, this.#abort.signal);
    if (items.length > 0) await this.#take(items);
    const isHasty =
      items.length === 0 && wait_ms > 0 && this.#ground.clock.elapsedMs() - begunMs < wait_ms / 10;
    this.#hasty = isHasty ? this.#hasty + 1 : 0;
    try {
      await before;
    } finally {
      if (this.#settling === before) this.#settling = Promise.resolve();
    }
    if (this.#hasty >= hastyMax) await this.#slowDown();
  }

  /** A cache between, or a fifth router of this data directory: what ends each poll must not keep this machine busy. */
  async #slowDown(): Promise<void> {
    const beyond = this.#hasty - hastyMax;
    const { origin } = this.#options.relay;
    if (beyond === 0) this.#ground.log.warn('polls end at once with nothing', { relay: origin });
    await this.#alarm.sleep(Math.min(1_000 * 2 ** Math.min(beyond, 8), longestRetryMs));
  }

  async #take(items: readonly LeasedItem[]): Promise<void> {
    const { relay, queue } = this.#options;
    const { verdicts, stored } = await this.#admit(items);
    if (stored.length > 0) this.#options.onStored(stored);
    this.#settling = relay.settle(queue, answerOf(items, verdicts), this.#abort.signal);
    // Awaited with the next poll.
    this.#settling.catch(() => {});
  }

  async #admit(items: readonly LeasedItem[]): Promise<Admitted> {
    const { gate, queueId, via } = this.#options;
    const arrivals = items.map(({ body }): Arrival => ({ body, queueId, via }));
    try {
      return await gate.admit(arrivals);
    } catch (error) {
      this.#ground.log.warn('an item could not be looked at', { code: describeError(error).code });
      return this.#oneByOne(arrivals);
    }
  }

  /** A defect of ours at one item holds up no other. */
  async #oneByOne(arrivals: readonly Arrival[]): Promise<Admitted> {
    const all: Admitted = { verdicts: [], stored: [], told: false };
    for (const arrival of arrivals) {
      try {
        const one = await this.#options.gate.admit([arrival]);
        all.verdicts.push(...one.verdicts);
        all.stored.push(...one.stored);
      } catch {
        all.verdicts.push({ defer_s: poisonS });
      }
    }
    return all;
  }
}

function answerOf(items: readonly LeasedItem[], verdicts: readonly Verdict[]) {
  const ack: string[] = [];
  const defer: { token: string; delay_s: number }[] = [];
  for (const [index, { token }] of items.entries()) {
    const verdict = verdicts[index];
    if (verdict === 'settle') ack.push(token);
    else if (verdict !== undefined) defer.push({ token, delay_s: verdict.defer_s });
  }
  return { ack, defer };
}
