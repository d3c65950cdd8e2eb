// A signed record under seal, as relays carry it: `pbs1`, suite, encapsulated key, ciphertext. It opens for one identity and one queue
// of it: an item that a relay moves to another queue stays shut.

import { assert } from '../protocol/assert.ts';
import { bytesOfHex, concat } from '../protocol/wire/bytes.ts';
import { wireLimits } from '../protocol/wire/limits.ts';
import { isPaddedLength, pad, unpad } from '../protocol/wire/padding.ts';
import { exchangePublicOf, ownKeysOf } from './exchange-key.ts';
import type { Bound } from './hpke.ts';
import { knownKeyBytes } from './key-text.ts';
import { firstSuite, suiteOf } from './seal-suites.ts';

const magic = Buffer.from('pbs1');
const infoStart = Buffer.from('postbell-1 seal\0');
const startBytes = magic.length + 1;

/** `queueId`: of the device or door whose queue it is for, 32 hex digits. */
function boundTo(recipient: Uint8Array, queueId: string, suite: number): Bound {
  const queue = bytesOfHex(queueId, 16);
  assert(queue !== undefined, 'the id of a device or door is 32 lower-case hex digits');
  return {
    info: concat([infoStart, recipient]),
    aad: concat([magic, Uint8Array.of(suite), recipient, queue]),
  };
}

/**
 * Seals a signed record for a queue.
 * @param to the recipient's key, 43 characters, one that may be used
 * @param ephemeral 32 random bytes, fresh for this item
 * @param suite as `pickSuite` answered; without it the first, which everybody knows
 */
export function sealItem({
  record,
  to,
  queueId,
  ephemeral,
  suite = firstSuite,
}: {
  record: Uint8Array;
  to: string;
  queueId: string;
  ephemeral: Uint8Array;
  suite?: number;
}): Uint8Array {
  const identity = knownKeyBytes(to);
  const recipient = exchangePublicOf(identity);
  const by = suiteOf(suite);
  assert(by !== undefined, 'a suite to seal with is one that is known');
  assert(recipient !== undefined, 'what is sealed is for a key that may be used');
  assert(ephemeral.length === 32, 'an ephemeral key is made of 32 bytes');
  const sealed = by.seal(recipient, ephemeral, boundTo(identity, queueId, suite), pad(record));
  assert(sealed !== undefined, 'a key that may be used shares a secret');
  return concat([magic, Uint8Array.of(suite), sealed.enc, sealed.ciphertext]);
}

/**
 * `framing`: no item of this format, by its start or length; `suite`: sealed in a way that is not known; `unopenable`: not for this
 * key and queue, or changed on its way; `padding`: opened, and not padded as items are.
 */
export type Unopened = 'framing' | 'suite' | 'unopenable' | 'padding';

/** The signed record of an item, not verified yet, or why there is none. @param seed 32 bytes of the own identity */
export function openItem({
  item,
  seed,
  queueId,
}: {
  item: Uint8Array;
  seed: Uint8Array;
  queueId: string;
}): Uint8Array | Unopened {
  if (item.length < startBytes || item.length > wireLimits.itemBytesMax) return 'framing';
  if (!magic.equals(item.subarray(0, magic.length))) return 'framing';
  const suite = suiteOf(item[magic.length]);
  if (suite === undefined) return 'suite';
  const enc = item.subarray(startBytes, startBytes + suite.encBytes);
  const ciphertext = item.subarray(startBytes + suite.encBytes);
  if (!isPaddedLength(ciphertext.length - suite.tagBytes)) return 'framing';
  const own = ownKeysOf(seed);
  const padded = suite.open(own.exchange, enc, boundTo(own.identity, queueId, suite.number), ciphertext);
  return padded === undefined ? 'unopenable' : (unpad(padded) ?? 'padding');
}
