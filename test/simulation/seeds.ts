/** Seeds that failed once by a fault of the product, with what it was; each is run again as a test. */
export const failedOnce: readonly { seed: number; steps: number; why: string }[] = [];
