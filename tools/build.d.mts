/** Bundles the product into `outdir`, as the version it is or as another one. */
export function bundle(outdir: string, as?: string): Promise<unknown>;
