/** Unpredictable bytes. */
export interface Random {
  /** @returns `count` bytes from a cryptographic source. */
  bytes(count: number): Uint8Array;
}
