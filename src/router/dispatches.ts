// What the router is handing over, and what hosts answer to it.

import type { Log } from '../ports/log.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import { describeError, Refusal, type Result } from '../protocol/errors.ts';
import { dispatch } from '../sessions/dispatch.ts';
import { type Drain, drain } from '../sessions/drain.ts';
import { type OutcomeKey, settleLate } from '../sessions/late.ts';
import type { HostOutcome, Switchboard } from '../sessions/switchboard.ts';
import type { Connections } from './connections.ts';

interface Context {
  board: Switchboard;
  connections: Connections;
  log: Log;
}

/** One operation a delivery at a time: a second notify joins the first. */
export class Dispatches {
  readonly #context: Context;
  readonly #inFlight = new Map<string, Promise<NotifyAnswer>>();
  readonly #projects = new Map<string, string>();

  constructor(context: Context) {
    this.#context = context;
  }

  begin(project: string, deliveryId: string, expectedGeneration?: number): Promise<NotifyAnswer> {
    const running = this.#inFlight.get(deliveryId);
    // A sender that pins a registration, or names another project, is answered for that alone.
    const joins = expectedGeneration === undefined && this.#projects.get(deliveryId) === project;
    if (running !== undefined && joins) return running;
    if (running !== undefined)
      return running.then(
        () => this.begin(project, deliveryId, expectedGeneration),
        () => this.begin(project, deliveryId, expectedGeneration),
      );
    const started = dispatch(this.#context.board, project, deliveryId, expectedGeneration).finally(() => {
      this.#inFlight.delete(deliveryId);
      this.#projects.delete(deliveryId);
    });
    started.catch((error: unknown) => this.#warn('dispatch failed', error, { delivery_id: deliveryId }));
    this.#inFlight.set(deliveryId, started);
    this.#projects.set(deliveryId, project);
    return started;
  }

  drain(plan: Drain): void {
    drain(this.#context.board, plan, (project, id) => this.begin(project, id)).catch((error: unknown) =>
      this.#warn('drain failed', error, { project: plan.project }),
    );
  }

  /** An outcome that is waited for ends its hand-off; any other is looked at as one that came late. */
  async settle(of: OutcomeKey, outcome: HostOutcome): Promise<Result<object>> {
    const { board, connections } = this.#context;
    if (connections.settle(of, outcome)) return { correlated: true };
    const late = await settleLate(board, of, outcome);
    if (late !== 'unfinished') return late;
    await this.#settled(of.delivery_id);
    const again = await settleLate(board, of, outcome);
    return again === 'unfinished' ? new Refusal('store_busy', 'its attempt is not finished yet') : again;
  }

  /** Resolves when nothing of the delivery is in flight. */
  async #settled(deliveryId: string): Promise<void> {
    await this.#inFlight.get(deliveryId)?.catch(() => {});
  }

  #warn(event: string, error: unknown, of: Record<string, string>): void {
    this.#context.log.warn(event, { ...of, code: describeError(error).code });
  }
}
