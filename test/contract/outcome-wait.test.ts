// How long the router that a person starts waits for a host.

import { beforeEach, describe, expect, it } from 'vitest';
import { startRouter } from '../../src/compose/daemon.ts';
import { routerAddress } from '../../src/compose/local.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { version } from '../../src/protocol/version.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { connectRouter } from '../../src/router/client.ts';
import { until } from '../process/home.ts';
import { atEnd, openScene, posted, registration, type Scene } from './desk.ts';
import { openRouter, pass } from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

describe('the router as it is started', () => {
  it('[SES-102] gives a host 10 s to answer, then fails the attempt and tells so', async () => {
    const { store, clock, random, wake } = desk;
    const places = placesOf({ HOME: desk.directory, POSTBELL_DB: desk.path });
    const log = { info: () => {}, warn: () => {} };
    const ground = { environment: {}, places, store, clock, random, wake, version };
    const daemon = await startRouter(ground, log, { stop: () => {}, lost: () => {} });
    atEnd(() => void daemon.close());
    const address = routerAddress(places, process.platform);
    const host = await connectRouter(address.socketPath, desk);
    atEnd(() => host.close());
    const introduction = { ...registration('s1'), auth_token: address.token(), postbell_version: version };
    await host.request({ type: 'register', ...introduction }, 1_000);
    const { delivery_id } = await posted(desk);
    const calls = routerCalls(address, desk);
    atEnd(() => calls.close());
    const told = calls.notify({ project: 'shop', delivery_id, wait: true });
    const states = () => desk.rows('SELECT state, failure_code FROM attempt');
    await pass(clock, 9_900, 100);
    expect(states()).toEqual([{ state: 'started', failure_code: null }]);
    await pass(clock, 200, 100);
    expect(await told).toEqual({ delivered: false, reason: 'host_outcome_timeout', unclear: true });
    expect(states()).toEqual([{ state: 'adapter_failed', failure_code: 'host_outcome_timeout' }]);
  });

  it.each([100, 600_000])('[SES-102] gives it %d ms where it is set so', async (hostOutcomeWaitMs) => {
    const socket = await openRouter(desk, { version, hostOutcomeWaitMs });
    const host = await connectRouter(socket, desk);
    atEnd(() => host.close());
    const known = { auth_token: 'token', postbell_version: version };
    const answer = await host.request(
      { type: 'register', ...registration('s1', { lease_ms: 300_000 }), ...known },
      1_000,
    );
    const { connection_id, generation } = answer;
    const beat = { type: 'heartbeat', project: 'shop', session_id: 's1', connection_id, generation };
    const { delivery_id } = await posted(desk);
    const calls = await connectRouter(socket, desk);
    atEnd(() => calls.close());
    const asked = { auth_token: 'token', project: 'shop', delivery_id, wait: true };
    const told = calls.request({ type: 'notify', ...asked }, 700_000);
    const states = () => desk.rows('SELECT state FROM attempt').map(({ state }) => state);
    await until('it is handed over', () => states().length === 1);
    for (let left = hostOutcomeWaitMs - 1; left > 0; left -= 60_000) {
      await pass(desk.clock, Math.min(left, 60_000), 60_000);
      await host.request(beat, 1_000);
    }
    expect(states()).toEqual(['started']);
    await pass(desk.clock, 1, 1);
    expect(await told).toMatchObject({ delivered: false, reason: 'host_outcome_timeout' });
  });
});
