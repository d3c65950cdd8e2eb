import { createHash } from 'node:crypto';

const periodMs = 43_200_000;

/**
 * The id under which a sealed item is posted: the first 16 bytes of SHA-256 over the message's own secret, the queue's name in ASCII
 * and the number of the 12-hour period of signing (8 bytes, big-endian). One period, one id, so that a relay keeps one item of two
 * tries; whoever lacks the secret links it to nothing.
 * @param secret random, of this message alone
 * @param queue `<key>.<id>`
 * @returns 32 hex digits
 */
export function itemId({
  secret,
  queue,
  signedAtMs,
}: {
  secret: Uint8Array;
  queue: string;
  signedAtMs: number;
}): string {
  const period = Buffer.alloc(8);
  period.writeBigUInt64BE(BigInt(Math.floor(signedAtMs / periodMs)));
  const digest = createHash('sha256').update(secret).update(queue, 'latin1').update(period).digest();
  return digest.toString('hex', 0, 16);
}
