/** A lock that the operating system frees when its holder dies, by whatever death. */
export interface Lock {
  /**
   * Whether others still meet it: false once the file was removed or replaced, which nobody may do while it is held. What
   * is not held any more is let go and taken anew.
   */
  held(): boolean;
  release(): void;
}

export interface Locks {
  /** @returns undefined when another process holds `name` now. Never waits. */
  tryTake(name: string): Lock | undefined;
  /** Whether a process holds it now; makes nothing. */
  isHeld(name: string): boolean;
  /** Leaves this time on it, in ms since 1970, whoever holds it. */
  stamp(name: string, atMs: number): void;
  /** The time left on it last, else when it was first taken; undefined where neither ever was. */
  stampedAtMs(name: string): number | undefined;
}
