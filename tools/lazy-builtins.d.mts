/** Rewrites the bundle at `file`, so that it loads what few runs need at its first use. Returns how many imports that are. */
export function withLazyBuiltins(file: string): number;
