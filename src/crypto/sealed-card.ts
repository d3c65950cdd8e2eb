// A signed card under seal for several identities: `pbc1`, suite, count, one wrapped key for each of them, then the padded record
// under that key. Who may read it is not written in it; how many may, is.

import { assert } from '../protocol/assert.ts';
import { bytesOfHex, concat, uintAt, uintBytes } from '../protocol/wire/bytes.ts';
import { wireLimits } from '../protocol/wire/limits.ts';
import { pad, paddedBytes, unpad } from '../protocol/wire/padding.ts';
import { exchangePublicOf, ownKeysOf } from './exchange-key.ts';
import { aeadOpen, aeadSeal, type Bound, tagBytes } from './hpke.ts';
import { knownKeyBytes } from './key-text.ts';
import { firstSuite, type SealSuite, suiteOf } from './seal-suites.ts';
import type { Unopened } from './sealed-item.ts';

const magic = Buffer.from('pbc1');
const infoStart = Buffer.from('postbell-1 card\0');
const startBytes = magic.length + 3;
const keyBytesLength = 32;
/** One key, one text: the nonce never meets a second. */
const zeroNonce = new Uint8Array(12);

/** Whose card it is, and of which device. */
export interface CardOwner {
  /** 43 characters. */
  owner: string;
  /** 32 hex digits. */
  deviceId: string;
}

function boundTo(recipient: Uint8Array, { owner, deviceId }: CardOwner, suite: number): Bound {
  const device = bytesOfHex(deviceId, 16);
  assert(device !== undefined, 'the id of a device is 32 lower-case hex digits');
  return {
    info: concat([infoStart, recipient]),
    aad: concat([magic, Uint8Array.of(suite), knownKeyBytes(owner), device]),
  };
}

const entryBytes = (suite: SealSuite): number => suite.encBytes + keyBytesLength + suite.tagBytes;

/**
 * Seals a signed card for its recipients, with a key that no other card has had. They stand in the order of their encapsulated keys,
 * which are random: it says nothing about them.
 * @param recipients keys that may be used, 43 characters each
 * @param random bytes from a cryptographic source
 * @returns `too_many` recipients, or `too_large`: what would not fit into 64 KiB
 */
export function sealCard(
  options: CardOwner & {
    record: Uint8Array;
    recipients: readonly string[];
    random: (count: number) => Uint8Array;
  },
): Uint8Array | 'too_many' | 'too_large' {
  const { record, recipients, random } = options;
  const suite = suiteOf(firstSuite);
  assert(suite !== undefined, 'the first suite is known');
  if (recipients.length > wireLimits.cardRecipientsMax) return 'too_many';
  const bytes = startBytes + recipients.length * entryBytes(suite) + paddedBytes(record.length) + tagBytes;
  if (bytes > wireLimits.cardBytesMax) return 'too_large';
  const key = random(keyBytesLength);
  const entries = recipients.map((to) => {
    const identity = knownKeyBytes(to);
    const recipient = exchangePublicOf(identity);
    assert(recipient !== undefined, 'what is sealed is for keys that may be used');
    const wrapped = suite.seal(recipient, random(32), boundTo(identity, options, suite.number), key);
    assert(wrapped !== undefined, 'a key that may be used shares a secret');
    return concat([wrapped.enc, wrapped.ciphertext]);
  });
  const aad = concat([
    magic,
    Uint8Array.of(suite.number),
    uintBytes(recipients.length, 2),
    ...entries.sort(Buffer.compare),
  ]);
  return concat([aad, aeadSeal({ key, nonce: zeroNonce, aad }, pad(record))]);
}

/** The signed card, not verified yet, or why there is none: `unopenable` where no entry is for this identity. */
export function openCard(options: CardOwner & { card: Uint8Array; seed: Uint8Array }): Uint8Array | Unopened {
  const { card, seed } = options;
  if (card.length < startBytes || card.length > wireLimits.cardBytesMax) return 'framing';
  if (!magic.equals(card.subarray(0, magic.length))) return 'framing';
  const suite = suiteOf(card[magic.length]);
  if (suite === undefined) return 'suite';
  const count = uintAt(card, magic.length + 1, 2);
  const bodyAt = startBytes + count * entryBytes(suite);
  if (count > wireLimits.cardRecipientsMax || bodyAt >= card.length) return 'framing';
  const key = unwrap(card.subarray(startBytes, bodyAt), suite, options, seed);
  if (key === undefined) return 'unopenable';
  const padded = aeadOpen({ key, nonce: zeroNonce, aad: card.subarray(0, bodyAt) }, card.subarray(bodyAt));
  return padded === undefined ? 'unopenable' : (unpad(padded) ?? 'padding');
}

/** Tries each entry: 25 ms for all 256. */
function unwrap(
  entries: Uint8Array,
  suite: SealSuite,
  owner: CardOwner,
  seed: Uint8Array,
): Uint8Array | undefined {
  const own = ownKeysOf(seed);
  const bound = boundTo(own.identity, owner, suite.number);
  for (let at = 0; at < entries.length; at += entryBytes(suite)) {
    const enc = entries.subarray(at, at + suite.encBytes);
    const wrapped = entries.subarray(at + suite.encBytes, at + entryBytes(suite));
    const key = suite.open(own.exchange, enc, bound, wrapped);
    if (key !== undefined) return key;
  }
  return undefined;
}
