/** The only source of time. */
export interface Clock {
  /** Wall-clock milliseconds since the Unix epoch: what is written down. Somebody may set it, both ways. */
  nowMs(): number;
  /** Milliseconds since some moment: what waits are measured by. It only rises. */
  elapsedMs(): number;
  /** Runs `then` once after `ms`. The returned function cancels it; cancelling twice is harmless. */
  after(ms: number, then: () => void): () => void;
}
