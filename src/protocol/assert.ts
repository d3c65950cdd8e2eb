/** A bug in Postbell, never bad input: it ends the operation that met it. */
export function assert(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${invariant}`);
}
