import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isOnCurve, montgomeryOf } from '../../src/crypto/curve-point.ts';
import { runs } from './runs.ts';

const { Point } = ed25519;

/** What the library says of a y: canonical ones only. */
function libraryKnows(bytes: Uint8Array): boolean {
  try {
    Point.fromBytes(bytes);
    return true;
  } catch {
    return false;
  }
}

describe('a point of the curve', () => {
  it('is told from none as an independent library tells it', () => {
    let on = 0;
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        // Below p for sure.
        bytes[31] = (bytes[31] as number) & 0x3f;
        if (isOnCurve(bytes)) on += 1;
        return isOnCurve(bytes) === libraryKnows(bytes);
      }),
      { numRuns: runs(300) },
    );
    expect(on).toBeGreaterThan(50);
  });

  it('lies on the other form where the library puts it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
        const key = ed25519.getPublicKey(seed);
        return Buffer.compare(montgomeryOf(key), ed25519.utils.toMontgomery(key)) === 0;
      }),
      { numRuns: runs(100) },
    );
  });
});
