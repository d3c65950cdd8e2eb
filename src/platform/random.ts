import { randomFillSync } from 'node:crypto';
import type { Random } from '../ports/random.ts';

const poolBytes = 4_096;

/** From the system's cryptographic source, drawn a page at a time: an id costs no call of its own. Nothing is handed out twice. */
export const systemRandom: Random = pooled();

function pooled(): Random {
  const pool = new Uint8Array(poolBytes);
  let used = poolBytes;
  return {
    bytes: (count) => {
      if (count > poolBytes) return randomFillSync(new Uint8Array(count));
      if (used + count > poolBytes) {
        randomFillSync(pool);
        used = 0;
      }
      const taken = pool.slice(used, used + count);
      pool.fill(0, used, used + count);
      used += count;
      return taken;
    },
  };
}
