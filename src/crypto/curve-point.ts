// What is asked of a public key beside its encoding, in whole numbers: whether a point of the curve of Ed25519 has this y, and where it lies
// on the other form of the curve (RFC 7748, section 4.1; RFC 8032, section 5.1). Only public values come here, once for each key, so it
// need not be constant in time. A library for this costs each command 11 ms of its start.

const p = 2n ** 255n - 19n;
/** d of -x^2 + y^2 = 1 + d x^2 y^2, which is -121665/121666. */
const d = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

const mod = (value: bigint): bigint => ((value % p) + p) % p;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % p;
    square = (square * square) % p;
  }
  return result;
}

/** The y of an encoding: 32 bytes, little-endian, without the sign of x. */
function yOf(point: Uint8Array): bigint {
  let value = 0n;
  for (let at = 31; at >= 0; at -= 1)
    value = (value << 8n) | BigInt((point[at] as number) & (at === 31 ? 0x7f : 0xff));
  return value;
}

/** Whether some x goes with its y: x^2 = (y^2-1)/(d y^2+1) is a square (Euler's criterion; the product is one where the quotient is). */
export function isOnCurve(point: Uint8Array): boolean {
  const square = mod(yOf(point) ** 2n);
  const over = mod(square - 1n);
  return over === 0n || power(mod(over * mod(d * square + 1n)), (p - 1n) / 2n) === 1n;
}

/** u = (1+y)/(1-y), 32 bytes. @param point not of small order: y is not 1 */
export function montgomeryOf(point: Uint8Array): Uint8Array {
  const y = yOf(point);
  let u = mod((1n + y) * power(mod(1n - y), p - 2n));
  return Uint8Array.from({ length: 32 }, () => {
    const byte = Number(u & 255n);
    u >>= 8n;
    return byte;
  });
}
