import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { QueueStore } from '../../src/ports/relay-queue.ts';
import { openRelayStore } from '../../src/store/relay/open.ts';
import { type FakeClock, seededRandom } from '../contract/clock.ts';
import { queueContract } from './queue-contract.ts';

queueContract('the store of a relay in SQLite', async (clock: FakeClock) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'pb-relay-'));
  const options = { path: path.join(directory, 'relay.db'), clock, random: seededRandom(1) };
  const opened: QueueStore[] = [await openRelayStore(options)];
  const close = async (): Promise<void> => {
    const closed = opened.pop()?.close();
    await clock.advance(1);
    await closed;
  };
  return {
    store: opened[0] as QueueStore,
    restart: async () => {
      await close();
      opened.push(await openRelayStore(options));
      return opened[0] as QueueStore;
    },
    end: async () => {
      await close();
      rmSync(directory, { recursive: true });
    },
  };
});
