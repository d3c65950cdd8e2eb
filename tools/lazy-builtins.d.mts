/** Rewrites the bundle at `file`, so that it loads what few runs need at its first use. */
export function withLazyBuiltins(file: string): void;
