// What the Stop gate of each session has blocked for, kept beside the store.

export interface GateLedger {
  /** Deliveries up to this place that are not listed were blocked for, too. */
  floor: number;
  /** The newest, by their place in the store and their (project, message id). */
  blocked: readonly (readonly [seq: number, project: string, messageId: string])[];
}

export interface Ledgers {
  /** Undefined where there is none; `corrupt` where what is there cannot be understood. */
  read(session: string): GateLedger | 'corrupt' | undefined;
  /** Whole and flushed when it returns. Fault where it cannot be written. */
  write(session: string, ledger: GateLedger): void;
}
