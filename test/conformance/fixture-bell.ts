// Bells over the fixture host, of the kinds that no part of the product rings yet: one that puts notices in a host's queue.

import type { Bell, BellDescription, RingOutcome } from '../../src/ports/bell.ts';
import type { Said } from './fixture-host.ts';

export type FixtureKind = 'codex-queue';

const notices: Omit<BellDescription, 'bell' | 'adapterKind' | 'hostKind'> = {
  contents: ['notice'],
  noticeBytesMax: 12_288,
  fullBytesMax: 0,
  pendingMax: 64,
  ringTimeoutMs: 10_000,
  attemptsMax: 3,
  retryGapMs: 2_000,
};

const descriptions: Record<FixtureKind, BellDescription> = {
  'codex-queue': { ...notices, bell: 'codex-queue', adapterKind: 'codex-queue', hostKind: 'codex' },
};

/** What an adapter asks of its host. */
export interface HostCalls {
  call(text: string): Promise<Said>;
  inTurn: boolean;
}

export function fixtureBell(kind: FixtureKind, host: HostCalls): Bell {
  let closed = false;
  return {
    describe: () => descriptions[kind],
    state: () => ({ state: closed ? 'gone' : host.inTurn ? 'busy' : 'ready' }),
    ring: async ({ text, content, notification_id }): Promise<RingOutcome> => {
      if (closed) return { outcome: 'rejected', code: 'adapter_disconnected', permanent: true };
      const said = await host.call(text);
      if (said.ok) return { outcome: 'accepted', content, receipt: { notification_id } };
      if (said.code === 'busy') return { outcome: 'rejected', code: 'adapter_error', permanent: false };
      const code = said.code === 'closed' ? 'adapter_disconnected' : 'adapter_rejected';
      return { outcome: 'rejected', code, permanent: true };
    },
    close: () => {
      closed = true;
    },
  };
}
