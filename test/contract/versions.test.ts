// A router that meets a newer host makes room for the installed one.

import { existsSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Daemon, startRouter } from '../../src/compose/daemon.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { noonMs } from './clock.ts';
import { atEnd, openScene, refused, type Scene } from './desk.ts';
import { openExchange } from './exchange.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

async function start(version: string): Promise<Daemon> {
  const { store, clock, random, wake } = desk;
  const places = placesOf({ HOME: desk.directory, POSTBELL_DB: desk.path });
  const daemon = await startRouter(
    { environment: {}, places, store, clock, random, wake, version },
    { info: () => {}, warn: () => {} },
    { stop: () => {}, lost: () => {} },
  );
  atEnd(() => void daemon.close());
  return daemon;
}

describe('a router older than the host that registers', () => {
  it('[SES-080] refuses it, stops, and does not start as that version again for 10 minutes; a newer one does at once', async () => {
    const first = await start('0.1.0');
    await first.close();
    const router = openExchange(desk, { version: '0.1.0' });
    const before = desk.counts();
    const refusal = refused(await router.ask('s1', { postbell_version: '0.2.0-rc.1' }));
    expect(refusal.code).toBe('router_outdated');
    expect(desk.counts()).toEqual({ ...before, router_superseded: 1 });
    expect(router.stops).toEqual([]);
    await desk.clock.advance(0);
    expect(router.stops).toEqual(['outdated']);
    const supersededMs = desk.clock.nowMs();
    expect(desk.rows('SELECT * FROM router_superseded')).toEqual([
      { version: '0.1.0', superseded_at_ms: supersededMs },
    ]);
    await expect(start('0.1.0')).rejects.toMatchObject({ code: 'router_superseded' });
    expect(existsSync(path.join(desk.directory, 'router-v1.sock'))).toBe(false);
    const newer = await start('0.2.0');
    await newer.close();
    await desk.clock.advance(599_000);
    await expect(start('0.1.0')).rejects.toMatchObject({ code: 'router_superseded' });
    await desk.clock.advance(999);
    await expect(start('0.1.0')).rejects.toMatchObject({ code: 'router_superseded' });
    await desk.clock.advance(1);
    expect(desk.clock.nowMs()).toBe(supersededMs + 600_000);
    await (await start('0.1.0')).close();
  });

  it('writes who it is, so that it can be ended by its pid', async () => {
    await start('0.1.0');
    expect(desk.store.read((tx) => tx.routers.newest())).toMatchObject({
      pid: process.pid,
      version: '0.1.0',
      socket: path.join(desk.directory, 'router-v1.sock'),
      started_at: new Date(noonMs).toISOString(),
    });
  });

  it('takes a host of its own version, an older one, and one whose version cannot be read', async () => {
    const router = openExchange(desk, { version: '0.2.0' });
    for (const postbell_version of ['0.2.0', '0.1.9', '0.2.0-rc.1', 'unheard of'])
      await router.join('s1', { postbell_version });
    expect(router.stops).toEqual([]);
    expect(desk.counts().router_superseded).toBe(0);
  });
});

describe('a registration that fails', () => {
  it('[SES-114] leaves nothing registered', async () => {
    const router = openExchange(desk, { version: '0.2.0' });
    await router.join('live', { bell: 'channel', adapter_kind: 'claude-channel', postbell_version: '0.2.0' });
    const before = desk.counts();
    const refusals: [Record<string, unknown>, string][] = [
      [{ auth_token: 'wrong' }, 'authentication_failed'],
      [{ postbell_version: '0.3.0' }, 'router_outdated'],
      [{ session_id: 'x'.repeat(129) }, 'invalid_field'],
      [{ project: ' ' }, 'invalid_request'],
      [{ principal_id: '/root' }, 'path_shaped_identifier'],
      [{ session_id: 'live' }, 'bell_outranked'],
      [{ session_id: 'live', bell: 'acp', if_free: true }, 'bell_outranked'],
      [{ session_id: 'live', bell: 'acp', principal_id: 'carol' }, 'session_identity_conflict'],
    ];
    for (const [over, code] of refusals)
      expect([over, refused(await router.ask('s1', over)).code]).toEqual([over, code]);
    expect(desk.counts()).toEqual({ ...before, router_superseded: 1 });
    expect(await router.status()).toMatchObject({ live_connections: 1 });
    expect(desk.rows('SELECT session_id FROM session')).toEqual([{ session_id: 'live' }]);
    // The store refuses: the write is undone as a whole.
    desk.store.write = () => Promise.reject(new Error('no'));
    await expect(router.ask('s2')).rejects.toThrow('no');
    expect(desk.counts()).toEqual({ ...before, router_superseded: 1 });
  });
});
