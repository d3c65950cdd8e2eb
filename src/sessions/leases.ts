// Leases as hosts were promised them. They are written soon, many in one commit; a store that is locked meanwhile holds up
// no heartbeat, and nobody is taken for gone who was told otherwise.

import type { ConnectionRow } from '../ports/presence.ts';

interface Promised {
  untilMs: number;
  summary?: string;
}

export class Leases {
  readonly #promised = new Map<string, Promised>();

  /** A summary that was not written yet is kept until a later one replaces it. */
  promise(connectionId: string, untilMs: number, summary?: string): void {
    const earlier = this.#promised.get(connectionId)?.summary;
    const latest = summary ?? earlier;
    this.#promised.set(connectionId, { untilMs, ...(latest !== undefined && { summary: latest }) });
  }

  /** What is to be written now, whichever heartbeat asks: a retry must not undo what came later. */
  latest(connectionId: string): Promised | undefined {
    return this.#promised.get(connectionId);
  }

  /** The promise stands in the store, unless a later one was made. */
  written(connectionId: string, promise: Promised | undefined): void {
    if (this.#promised.get(connectionId) === promise) this.#promised.delete(connectionId);
  }

  /** The connection with the lease that its host counts on. */
  of(row: ConnectionRow | undefined): ConnectionRow | undefined {
    const promised = row && this.#promised.get(row.connection_id)?.untilMs;
    return row === undefined || promised === undefined || promised <= row.lease_expires_at_ms
      ? row
      : { ...row, lease_expires_at_ms: promised };
  }
}
