// How long the router that a person starts waits for a host.

import { beforeEach, describe, expect, it } from 'vitest';
import { startRouter } from '../../src/compose/daemon.ts';
import { routerAddress } from '../../src/compose/local.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { version } from '../../src/protocol/version.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { connectRouter } from '../../src/router/client.ts';
import { atEnd, openScene, posted, registration, type Scene } from './desk.ts';
import { pass } from './sockets.ts';

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

describe('the router as it is started', () => {
  it('[SES-102] gives a host 10 s to answer, then fails the attempt and tells so', async () => {
    const { store, clock, random, wake } = desk;
    const places = placesOf({ HOME: desk.directory, POSTBELL_DB: desk.path });
    const log = { info: () => {}, warn: () => {} };
    const ground = { places, store, clock, random, wake, version };
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
    expect(await told).toEqual({ delivered: false, reason: 'host_outcome_timeout' });
    expect(states()).toEqual([{ state: 'adapter_failed', failure_code: 'host_outcome_timeout' }]);
  });
});
