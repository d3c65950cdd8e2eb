// A token is one block of AES: queue and number of the item, under a key that lies in the store. It says nothing to others
// (a plain number would tell how much the relay takes in all), nobody can make one, and it outlives a restart.

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { assert } from '../../protocol/assert.ts';

/** Of the key; AES-128. */
export const tokenKeyBytes = 16;
const blockBytes = 16;
/** Queue, four zeros, item: each number of six bytes. */
const numberBytes = 6;
const itemAt = blockBytes - numberBytes;

export interface Tokens {
  /** One token an item, in their order. */
  make(queue: number, items: readonly number[]): string[];
  /** The item's number; undefined where the token is none of this queue. */
  read(queue: number, token: string): number | undefined;
}

export function tokensOf(key: Uint8Array): Tokens {
  assert(key.length === tokenKeyBytes, 'the key of tokens has 16 bytes');
  // Each block by itself, on purpose: no two items have one number. Kept, since making a cipher costs more than a block.
  const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  const decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  return {
    make: (queue, items) => {
      const blocks = Buffer.alloc(items.length * blockBytes);
      for (const [nth, item] of items.entries()) {
        blocks.writeUIntBE(queue, nth * blockBytes, numberBytes);
        blocks.writeUIntBE(item, nth * blockBytes + itemAt, numberBytes);
      }
      const sealed = cipher.update(blocks);
      return items.map((_, nth) => sealed.toString('base64url', nth * blockBytes, (nth + 1) * blockBytes));
    },
    read: (queue, token) => {
      const sealed = Buffer.from(token, 'base64url');
      if (sealed.length !== blockBytes) return undefined;
      const block = decipher.update(sealed);
      const isOurs = block.readUIntBE(0, numberBytes) === queue && block.readUInt32BE(numberBytes) === 0;
      return isOurs ? block.readUIntBE(itemAt, numberBytes) : undefined;
    },
  };
}
