// The ways to seal that this release knows, by the number that items, cards and routes name them with. A new way is a new row; the
// old ones stay, for items that are on their way.

import type { ExchangePair, ExchangePublic } from './exchange-key.ts';
import { type Bound, encapsulatedBytes, hpkeOpen, hpkeSeal, tagBytes } from './hpke.ts';

export interface SealSuite {
  readonly number: number;
  readonly encBytes: number;
  readonly tagBytes: number;
  /** @param ephemeral 32 random bytes, used once */
  seal(
    recipient: ExchangePublic,
    ephemeral: Uint8Array,
    bound: Bound,
    plaintext: Uint8Array,
  ): { enc: Uint8Array; ciphertext: Uint8Array } | undefined;
  /** Undefined where it does not open. */
  open(own: ExchangePair, enc: Uint8Array, bound: Bound, ciphertext: Uint8Array): Uint8Array | undefined;
}

const suites: readonly SealSuite[] = [
  { number: 1, encBytes: encapsulatedBytes, tagBytes, seal: hpkeSeal, open: hpkeOpen },
];

/** The suites to name in pairings and routes, in ascending order. */
export const suitesKnown: readonly number[] = suites.map(({ number }) => number);

/** Every release knows it: what is used for a peer who has named none yet. */
export const firstSuite = 1;

export function suiteOf(number: number | undefined): SealSuite | undefined {
  return suites.find((suite) => suite.number === number);
}

/** The highest that this release and the other side know; undefined: there is none, and nothing is sealed by guessing. */
export function pickSuite(known: readonly number[]): number | undefined {
  return suitesKnown.filter((number) => known.includes(number)).at(-1);
}
