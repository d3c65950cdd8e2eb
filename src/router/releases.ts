// The router asks hosts about notices that lie in their queues: one question a thread at a time, few at once, and only
// when one is due. What is pending lies in the store; nothing is kept here but what is under way.

import type { Log } from '../ports/log.ts';
import type { AskQueue, ReleaseRow } from '../ports/releases.ts';
import { describeError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { checkRelease } from '../sessions/release.ts';
import type { Switchboard } from '../sessions/switchboard.ts';

/** More notices than one thread's queue holds, so that others are seen beside it. */
const lookedAt = 256;

export class QueueReleases {
  readonly #ports: Pick<Switchboard, 'store' | 'clock' | 'random' | 'wake'>;
  readonly #ask: AskQueue;
  readonly #log: Log;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(ports: Pick<Switchboard, 'store' | 'clock' | 'random' | 'wake'>, ask: AskQueue, log: Log) {
    this.#ports = ports;
    this.#ask = ask;
    this.#log = log;
  }

  /** Begins with what is due now. Throws where the store cannot be read. */
  look(): void {
    if (this.#closing.signal.aborted) return;
    const { store, clock } = this.#ports;
    const due = store.read((tx) => tx.releases.due(clock.nowMs(), lookedAt));
    for (const row of due) {
      if (this.#underWay.size >= limits.releasesAtOnceMax) return;
      if (!this.#underWay.has(row.thread_id)) this.#begin(row, due.filter(isSameNotice(row)));
    }
  }

  /** Begins with nothing any more, gives up what is under way and waits for its end. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#underWay.values());
  }

  #begin({ delivery_id, thread_id }: ReleaseRow, rows: readonly ReleaseRow[]): void {
    const failed = (what: string) => (error: unknown) =>
      this.#log.warn(what, { delivery_id, code: describeError(error).code });
    const onFault = failed('release not asked');
    const work = checkRelease(this.#ports, rows, { ask: this.#ask, abort: this.#closing.signal, onFault })
      .catch(failed('release not written'))
      .finally(() => this.#underWay.delete(thread_id));
    this.#underWay.set(thread_id, work);
  }
}

/** One notice may ring for several deliveries. */
const isSameNotice =
  (one: ReleaseRow) =>
  (other: ReleaseRow): boolean =>
    other === one || (other.submission_id !== null && other.submission_id === one.submission_id);
