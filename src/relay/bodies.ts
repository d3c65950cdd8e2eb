// Bodies are read from the connection itself, and never further than they may go.

import type { IncomingMessage } from 'node:http';
import type { Clock } from '../ports/clock.ts';
import { relayLimits } from '../protocol/relay-http.ts';
import { Refused } from './answers.ts';

/**
 * The body, at most `bytesMax` long. A refusal comes before the rest is read; a sender that takes longer than 30 s, or goes
 * away, has its connection closed.
 */
export function readBody(
  incoming: IncomingMessage,
  bytesMax: number,
  clock: Clock,
): Promise<Uint8Array | Refused> {
  const tooLarge = new Refused('too_large', `the body has more than ${bytesMax} bytes`, { closes: true });
  if (Number(incoming.headers['content-length'] ?? 0) > bytesMax) return Promise.resolve(tooLarge);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (outcome: Uint8Array | Refused): void => {
      cancel();
      incoming.off('data', take);
      resolve(outcome);
    };
    const broken = (): void =>
      settle(new Refused('bad_request', 'the body did not come whole', { closes: true }));
    const cancel = clock.after(relayLimits.uploadMs, () => {
      incoming.destroy();
      broken();
    });
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        incoming.pause();
        settle(tooLarge);
      } else chunks.push(chunk);
    };
    incoming.on('data', take);
    incoming.once('end', () => settle(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    incoming.once('error', broken);
    incoming.once('close', broken);
  });
}
