// The server of a Codex thread that rings it where no companion does, beside a companion that comes, stays and goes.

import path from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { CodexServer } from '../../src/compose/codex-server.ts';
import { placesOf } from '../../src/platform/paths.ts';
import { routerCalls } from '../../src/router/calls.ts';
import { locksIn } from '../../src/store/lock.ts';
import { atEnd, ok, openScene, type Scene } from './desk.ts';
import { attached, openRouter, pass } from './sockets.ts';

const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';
const principal_id = `codex-thread-${thread}`;
const minutes = (count: number) => pass(desk.clock, count * 60_000, 1_000);

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** The session's registrations so far, and why each but a live one ended. */
const registrations = (): unknown[] =>
  desk.rows('SELECT generation, disconnect_reason AS why FROM connection ORDER BY seq').map(({ why }) => why);

/** A server of the thread, not bound yet. */
async function openServer() {
  const socketPath = await openRouter(desk);
  const address = { socketPath, token: () => 'token' };
  const places = placesOf({ POSTBELL_HOME: path.join(desk.directory, 'data') });
  const locks = locksIn(places.runtime);
  const router = routerCalls(address, desk);
  const server = new CodexServer({
    ...desk,
    environment: {},
    places,
    locks,
    address,
    router,
    close: () => {},
  });
  atEnd(() => {
    void server.close();
    router.close();
  });
  const context = ok(server.context({ threadId: thread }));
  return {
    bind: async () => ok(await context.bind?.(thread, desk.directory)),
    project: async () => ok(await context.project()),
    rings: () => locks.isHeld(`notifier-${thread}`),
    /** As the thread's companion registers it. */
    companion: (project: string) => {
      const bell = { bell: 'codex-queue', adapter_kind: 'codex-queue', host_kind: 'codex' } as const;
      return attached(desk, socketPath, { session_id: thread, principal_id, project, ...bell }).attachment;
    },
  };
}

it('[HOST-160] registers the thread 5 s after binding; a companion that comes replaces it while it lives, and nothing flaps', async () => {
  const server = await openServer();
  await server.bind();
  const project = await server.project();
  await pass(desk.clock, 4_750);
  expect([registrations(), server.rings()]).toEqual([[], false]);
  await pass(desk.clock, 250);
  expect([registrations(), server.rings()]).toEqual([[null], true]);
  await minutes(5);
  expect([registrations(), server.rings()]).toEqual([[null], true]);

  const companion = server.companion(project);
  await pass(desk.clock, 1_000);
  expect([registrations(), server.rings()]).toEqual([['superseded', null], false]);
  await minutes(5);
  expect([registrations(), server.rings()]).toEqual([['superseded', null], false]);

  // Where its hooks start none anew, the server rings again, until one comes again.
  await companion.close();
  await pass(desk.clock, 31_000, 1_000);
  expect([registrations().slice(2), server.rings()]).toEqual([[null], true]);
  server.companion(project);
  await minutes(5);
  expect([registrations().slice(2), server.rings()]).toEqual([['superseded', null], false]);
});

it('[HOST-160] stays unregistered where a companion came before it', async () => {
  const server = await openServer();
  await server.bind();
  server.companion(await server.project());
  await minutes(5);
  expect([registrations(), server.rings()]).toEqual([[null], false]);
});
