/** Seeds that failed once by a fault of the product, with what it was; each is run again as a test. */
export const failedOnce: readonly { seed: number; why: string }[] = [
  { seed: 21, why: 'two asked each other, and the one who was answered never answered' },
  { seed: 162, why: 'a machine was asked twice within a minute, and answered once' },
];
