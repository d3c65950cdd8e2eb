// HPKE (RFC 9180), base mode of one suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. One message a context, so the
// nonce is the base nonce. Numbers in brackets are sections of the RFC.

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { type ExchangePair, type ExchangePublic, exchangePairOf, sharedBytes } from './exchange-key.ts';
import { publicKeyOf } from './platform-key.ts';

export const encapsulatedBytes = 32;
export const tagBytes = 16;

const none = Buffer.alloc(0);
const version = Buffer.from('HPKE-v1');
/** "KEM" and its id; "HPKE" and the ids of KEM, KDF and AEAD [4.1, 5.1]. */
const kemSuite = Buffer.from('KEM\0\x20', 'latin1');
export const hpkeSuite: Uint8Array = Buffer.from('HPKE\0\x20\0\x01\0\x03', 'latin1');
const baseMode = Buffer.alloc(1);

const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer => {
  const made = createHmac('sha256', key);
  for (const part of parts) made.update(part);
  return made.digest();
};

function labeledExtract(suite: Uint8Array, salt: Uint8Array, label: string, ikm: Uint8Array): Buffer {
  return hmac(salt, version, suite, Buffer.from(label), ikm);
}

/** LabeledExpand [4] of at most one block of SHA-256. */
export function labeledExpand(
  suite: Uint8Array,
  secret: Uint8Array,
  label: string,
  info: Uint8Array,
  length: number,
): Uint8Array {
  const size = Buffer.from([length >> 8, length & 255]);
  return hmac(secret, size, version, suite, Buffer.from(label), info, Buffer.from([1])).subarray(0, length);
}

/** [7.1.3] @param ikm 32 bytes, as random as the key shall be */
export function deriveKeyPair(ikm: Uint8Array): ExchangePair {
  const secret = labeledExtract(kemSuite, none, 'dkp_prk', ikm);
  return exchangePairOf(labeledExpand(kemSuite, secret, 'sk', none, 32));
}

/** ExtractAndExpand [4.1]; undefined where the exchange gave zeros [7.1.4]. */
function sharedSecret(dh: Uint8Array | undefined, enc: Uint8Array, recipient: Uint8Array) {
  if (dh === undefined) return undefined;
  const secret = labeledExtract(kemSuite, none, 'eae_prk', dh);
  return labeledExpand(kemSuite, secret, 'shared_secret', Buffer.concat([enc, recipient]), 32);
}

/** Encap [4.1] with the ephemeral pair given; undefined for a recipient key of small order. `enc` is the pair's public key. */
export function encapsulate(recipient: ExchangePublic, ephemeral: ExchangePair): Uint8Array | undefined {
  return sharedSecret(sharedBytes(ephemeral.secret, recipient.key), ephemeral.bytes, recipient.bytes);
}

/** Decap [4.1]; undefined for an `enc` of small order. @param enc 32 bytes */
export function decapsulate(enc: Uint8Array, own: ExchangePair): Uint8Array | undefined {
  return sharedSecret(sharedBytes(own.secret, publicKeyOf('X25519', enc)), enc, own.bytes);
}

export interface KeySchedule {
  readonly context: Uint8Array;
  readonly secret: Uint8Array;
  readonly key: Uint8Array;
  readonly baseNonce: Uint8Array;
}

const noPskId = labeledExtract(hpkeSuite, none, 'psk_id_hash', none);

/** KeySchedule [5.1] in base mode. */
export function keySchedule(shared: Uint8Array, info: Uint8Array): KeySchedule {
  const context = Buffer.concat([baseMode, noPskId, labeledExtract(hpkeSuite, none, 'info_hash', info)]);
  const secret = labeledExtract(hpkeSuite, shared, 'secret', none);
  return {
    context,
    secret,
    key: labeledExpand(hpkeSuite, secret, 'key', context, 32),
    baseNonce: labeledExpand(hpkeSuite, secret, 'base_nonce', context, 12),
  };
}

const cipher = 'chacha20-poly1305';

export interface AeadText {
  key: Uint8Array;
  nonce: Uint8Array;
  aad: Uint8Array;
}

/** ChaCha20-Poly1305 (RFC 8439): the text enciphered, then its tag of 16 bytes. */
export function aeadSeal({ key, nonce, aad }: AeadText, plaintext: Uint8Array): Uint8Array {
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes });
  sealing.setAAD(aad, { plaintextLength: plaintext.length });
  return Buffer.concat([sealing.update(plaintext), sealing.final(), sealing.getAuthTag()]);
}

/** Undefined where the tag does not fit. */
export function aeadOpen({ key, nonce, aad }: AeadText, sealed: Uint8Array): Uint8Array | undefined {
  const length = sealed.length - tagBytes;
  if (length < 0) return undefined;
  const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes });
  opening.setAAD(aad, { plaintextLength: length });
  opening.setAuthTag(sealed.subarray(length));
  const { buffer, byteOffset } = opening.update(sealed.subarray(0, length));
  try {
    opening.final();
  } catch {
    return undefined;
  }
  // The same bytes, as no Buffer: those have a `slice` of their own, which shares them.
  return new Uint8Array(buffer, byteOffset, length);
}

/** What the key schedule and the cipher are told beside the secret. */
export interface Bound {
  info: Uint8Array;
  aad: Uint8Array;
}

/** Seal [6.1]: `enc` and the ciphertext; undefined for a recipient key of small order. @param ephemeral 32 random bytes, used once */
export function hpkeSeal(
  recipient: ExchangePublic,
  ephemeral: Uint8Array,
  { info, aad }: Bound,
  plaintext: Uint8Array,
): { enc: Uint8Array; ciphertext: Uint8Array } | undefined {
  const pair = deriveKeyPair(ephemeral);
  const shared = encapsulate(recipient, pair);
  if (shared === undefined) return undefined;
  const { key, baseNonce } = keySchedule(shared, info);
  return { enc: pair.bytes, ciphertext: aeadSeal({ key, nonce: baseNonce, aad }, plaintext) };
}

/** Open [6.1]; undefined where it does not open. @param enc 32 bytes */
export function hpkeOpen(
  own: ExchangePair,
  enc: Uint8Array,
  { info, aad }: Bound,
  ciphertext: Uint8Array,
): Uint8Array | undefined {
  const shared = decapsulate(enc, own);
  if (shared === undefined) return undefined;
  const { key, baseNonce } = keySchedule(shared, info);
  return aeadOpen({ key, nonce: baseNonce, aad }, ciphertext);
}
