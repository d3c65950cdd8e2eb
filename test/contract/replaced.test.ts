// A session's process that another one keeps from its session: how often it asks, and how.

import { beforeEach, describe, expect, it } from 'vitest';
import { noonMs } from './clock.ts';
import { openScene, type Scene } from './desk.ts';
import { attached, openFakeRouter, pass, registered } from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

describe('a process of a session', () => {
  it.each([
    ['replaced', [0, 31, 61, 91]],
    ['outranked', [0, 30, 60, 90]],
  ] as const)(
    '[SES-027] that was %s asks again every 30 s, and only where nobody holds the session',
    async (how, times) => {
      const fake = await openFakeRouter(desk, (_, socket) => {
        if (how === 'outranked' || fake.came > 1)
          return { ok: false, error: { code: 'bell_outranked', message: 'held' } };
        const superseded = { type: 'session_superseded', request_id: 'x', generation: 1 };
        desk.clock.after(1_000, () => socket.write(`${JSON.stringify(superseded)}\n`));
        return registered();
      });
      const host = attached(desk, fake.socketPath);
      await pass(desk.clock, 100_000, 1_000);
      expect(fake.asked.map(({ type, atMs }) => [type, (atMs - noonMs) / 1_000])).toEqual(
        times.map((second) => ['register', second]),
      );
      expect(fake.asked.map(({ if_free }) => if_free)).toEqual([undefined, true, true, true]);
      expect(host.faults).toEqual([]);
    },
  );
});
