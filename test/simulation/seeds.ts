/** Seeds that failed once by a fault of the product, with what it was; each is run again as a test. */
export const failedOnce: readonly { seed: number; steps: number; why: string }[] = [
  {
    seed: 338,
    steps: 6_000,
    why: 'a hand-off was accepted on the notice of another session of its principal',
  },
  { seed: 403, steps: 6_000, why: 'a fault of the disk in a shared commit came without its code' },
  { seed: 17, steps: 86_000, why: 'a send that had to wait at its end told what was known before' },
];
