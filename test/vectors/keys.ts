// Encodings of Ed25519 points that no key and no R may have, as hex of 32 bytes.

const ff = 'ff'.repeat(30);
const zeros = '00'.repeat(31);

/** y of a point whose order divides 8, canonical or not, with the sign bit clear. */
const small = [
  `00${zeros}`,
  `01${zeros}`,
  `ec${ff}7f`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ed${ff}7f`,
  `ee${ff}7f`,
];

const withSign = (point: string): string =>
  point.slice(0, 62) + (Number.parseInt(point.slice(62), 16) | 0x80).toString(16).padStart(2, '0');

/** All 14: each with either sign bit. */
export const smallOrderPoints: readonly string[] = small.flatMap((point) => [point, withSign(point)]);

export interface RefusedKey {
  name: string;
  key: string;
}

export const refusedKeys: readonly RefusedKey[] = [
  // y from p + 2 up to 2^255 - 1: none of small order, and each is y - p again.
  { name: 'y = p + 2', key: `ef${ff}7f` },
  { name: 'y = p + 3', key: `f0${ff}7f` },
  { name: 'y = p + 9, with the sign bit', key: `f6${ff}ff` },
  { name: 'y = 2^255 - 1', key: `ff${ff}7f` },
  { name: 'y = 2^255 - 1, with the sign bit', key: `ff${ff}ff` },
  { name: 'x = 0 with the sign bit, y = 1', key: `01${'00'.repeat(30)}80` },
  { name: 'x = 0 with the sign bit, y = p - 1', key: `ec${ff}ff` },
  { name: 'not on the curve, y = 2', key: `02${zeros}` },
  { name: 'not on the curve, y = 2, with the sign bit', key: `02${'00'.repeat(30)}80` },
  { name: 'not on the curve, y = 7', key: `07${zeros}` },
];
