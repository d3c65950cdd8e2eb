/** Wakes other processes of this account: the touch carries nothing and decides nothing. */
export interface Wake {
  /** Called after a commit that can start or end waiting. Never throws: a lost touch is made good by the tick. */
  touch(): void;
  /** Calls `onTouch` after a touch by any process, possibly once for several. The returned function ends it. */
  watch(onTouch: () => void): () => void;
}
