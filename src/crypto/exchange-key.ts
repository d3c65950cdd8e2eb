// The X25519 key that belongs to an Ed25519 identity: no second key has to be told to anybody. Point for point by the map between
// the two forms of the curve, u = (1+y)/(1-y) (RFC 7748, section 4.1); secret for secret, both are the same clamped number.

import { createHash, diffieHellman, type KeyObject } from 'node:crypto';
import { assert } from '../protocol/assert.ts';
import { montgomeryOf } from './curve-point.ts';
import { isUsableKey } from './ed25519.ts';
import { passingPrivateKeyOf, privateKeyOf, publicBytesOf, publicKeyOf } from './platform-key.ts';
import { keysRemembered, remembered } from './remembered.ts';

export interface ExchangePublic {
  /** 32, X25519. */
  readonly bytes: Uint8Array;
  readonly key: KeyObject;
}

export interface ExchangePair {
  readonly secret: KeyObject;
  /** Of the public key: 32, X25519. */
  readonly bytes: Uint8Array;
}

/** Undefined for a key that may not be used; with those of small order out, no denominator is zero. */
const mapped = remembered<ExchangePublic | undefined>(keysRemembered, (key) => {
  if (!isUsableKey(key)) return undefined;
  const bytes = montgomeryOf(key);
  return { bytes, key: publicKeyOf('X25519', bytes) };
});

/**
 * The X25519 key of an identity; undefined where the key is none that may be used.
 * @param key 32 bytes, Ed25519
 */
export function exchangePublicOf(key: Uint8Array): ExchangePublic | undefined {
  return key.length === 32 ? mapped(key) : undefined;
}

/** The secret number of RFC 8032, section 5.1.5: the first half of SHA-512 of the seed, clamped. */
export function exchangeSecretBytes(seed: Uint8Array): Uint8Array {
  const half = new Uint8Array(createHash('sha512').update(seed).digest().subarray(0, 32));
  half[0] = (half[0] as number) & 0xf8;
  half[31] = ((half[31] as number) & 0x7f) | 0x40;
  return half;
}

export interface OwnKeys {
  /** The identity's public key, 32 bytes, Ed25519. */
  readonly identity: Uint8Array;
  readonly exchange: ExchangePair;
}

/** As long as the owner of the seed keeps it, and no longer. */
const ownKeys = new WeakMap<Uint8Array, OwnKeys>();

/** Both pairs of an identity, worked out once for each array: 1 ms. @param seed 32 bytes, not changed in place */
export function ownKeysOf(seed: Uint8Array): OwnKeys {
  const known = ownKeys.get(seed);
  if (known !== undefined) return known;
  assert(seed.length === 32, 'a seed has 32 bytes');
  const identity = publicBytesOf(privateKeyOf('Ed25519', seed));
  const made = { identity, exchange: exchangePairOf(exchangeSecretBytes(seed)) };
  ownKeys.set(seed, made);
  return made;
}

/** The pair of a secret. @param secret 32 bytes */
export function exchangePairOf(secret: Uint8Array): ExchangePair {
  const own = passingPrivateKeyOf('X25519', secret);
  return { secret: own, bytes: publicBytesOf(own) };
}

/** The shared 32 bytes (RFC 7748, section 6.1); undefined where they are all zero: the other key was of small order. */
export function sharedBytes(secret: KeyObject, other: KeyObject): Uint8Array | undefined {
  let shared: Buffer;
  try {
    shared = diffieHellman({ privateKey: secret, publicKey: other });
  } catch {
    // OpenSSL refuses the all-zero result itself, as a failed derivation. Two X25519 keys fail in no other way.
    return undefined;
  }
  return shared.every((byte) => byte === 0) ? undefined : new Uint8Array(shared);
}
