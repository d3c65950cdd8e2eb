// Leases as hosts were promised them. They are written soon, many in one commit; a store that is locked meanwhile holds up
// no heartbeat, and nobody is taken for gone who was told otherwise.

import type { ConnectionRow } from '../ports/store.ts';

export class Leases {
  readonly #promised = new Map<string, number>();

  promise(connectionId: string, untilMs: number): void {
    this.#promised.set(connectionId, untilMs);
  }

  /** The promise stands in the store, unless a later one was made. */
  written(connectionId: string, untilMs: number): void {
    if (this.#promised.get(connectionId) === untilMs) this.#promised.delete(connectionId);
  }

  /** The connection with the lease that its host counts on. */
  of(row: ConnectionRow | undefined): ConnectionRow | undefined {
    const promised = row && this.#promised.get(row.connection_id);
    return row === undefined || promised === undefined || promised <= row.lease_expires_at_ms
      ? row
      : { ...row, lease_expires_at_ms: promised };
  }
}
