// A second implementation of the format, from the specification's text and the libraries @noble/curves and @hpke: it imports nothing
// of the product. What both make must be the same bytes.

import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core';
import { ed25519 } from '@noble/curves/ed25519.js';

export const fromHex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const valueBytes = (value: string): Buffer =>
  value.startsWith('0x') ? Buffer.from(value.slice(2), 'hex') : Buffer.from(value, 'utf8');

function big(value: number, bytes: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * bytes, '0'), 'hex');
}

export interface Plain {
  type: number;
  flags?: number;
  /** Base64url. */
  from: string;
  /** Base64url; undefined: zeros. */
  to?: string | undefined;
  time: number;
  /** With or without the hyphens of a UUID. */
  id: string;
  fields: readonly (readonly [tag: number, value: string])[];
  /** Where it is to be wrong. */
  count?: number;
}

/** The body of a record: 103 bytes of header, then the fields in the order given, right or wrong. */
export function plainBody({
  type,
  flags = 0,
  from,
  to,
  time,
  id,
  fields,
  count = fields.length,
}: Plain): Buffer {
  return Buffer.concat([
    Buffer.from('postbell-1\0', 'ascii'),
    Buffer.from([type, flags]),
    Buffer.from(from, 'base64url'),
    to === undefined ? Buffer.alloc(32) : Buffer.from(to, 'base64url'),
    big(time, 8),
    Buffer.from(id.replaceAll('-', ''), 'hex'),
    big(count, 2),
    ...fields.flatMap(([tag, value]) => [
      Buffer.from([tag]),
      big(valueBytes(value).length, 4),
      valueBytes(value),
    ]),
  ]);
}

export function plainSigned(body: Uint8Array, seed: Uint8Array): Uint8Array {
  return Buffer.concat([body, ed25519.sign(body, seed)]);
}

export const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Chacha20Poly1305(),
});

/** As an ArrayBuffer of its own, which is what the library takes. */
export const own = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer as ArrayBuffer;

export interface PlainSeal {
  /** X25519. */
  recipient: Uint8Array;
  info: Uint8Array;
  aad: Uint8Array;
  plaintext: Uint8Array;
  /** Of the ephemeral key; without it a random one. */
  ikm?: Uint8Array;
}

export async function plainSeal(seal: PlainSeal): Promise<{ enc: Uint8Array; ciphertext: Uint8Array }> {
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(own(seal.recipient)),
    info: own(seal.info),
    ...(seal.ikm && { ekm: await suite.kem.deriveKeyPair(own(seal.ikm)) }),
  });
  const ciphertext = await sender.seal(own(seal.plaintext), own(seal.aad));
  return { enc: new Uint8Array(sender.enc), ciphertext: new Uint8Array(ciphertext) };
}

export async function plainOpen(
  secret: Uint8Array,
  {
    enc,
    info,
    aad,
    ciphertext,
  }: { enc: Uint8Array; info: Uint8Array; aad: Uint8Array; ciphertext: Uint8Array },
): Promise<Uint8Array> {
  const recipient = await suite.createRecipientContext({
    recipientKey: await suite.kem.deserializePrivateKey(own(secret)),
    enc: own(enc),
    info: own(info),
  });
  return new Uint8Array(await recipient.open(own(ciphertext), own(aad)));
}

/** Length, record, zeros to a power of two. */
export function plainPadded(record: Uint8Array): Buffer {
  let length = 512;
  while (length < record.length + 4) length *= 2;
  return Buffer.concat([big(record.length, 4), record, Buffer.alloc(length - 4 - record.length)]);
}
