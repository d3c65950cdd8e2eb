/** A lock that the operating system frees when its holder dies, by whatever death. */
export interface Lock {
  release(): void;
}

export interface Locks {
  /** @returns undefined when another process holds `name` now. Never waits. */
  tryTake(name: string): Lock | undefined;
}
