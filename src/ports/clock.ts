/** The only source of time. */
export interface Clock {
  /** Wall-clock milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Runs `then` once after `ms`. The returned function cancels it; cancelling twice is harmless. */
  after(ms: number, then: () => void): () => void;
}
