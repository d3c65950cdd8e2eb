/** Seeds that failed once, with what was at fault; each is run again as a test. */
export const failedOnce: readonly { seed: number; steps: number; why: string }[] = [];
