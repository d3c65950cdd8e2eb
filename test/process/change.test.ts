// A session's process that registers anew under another bell, on the real router.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { Attachment } from '../../src/router/attachment.ts';
import { type Home, makeHome, until } from './home.ts';
import { answer, postbell } from './postbell.ts';
import { liveCards } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

it('an attachment that changes its bell is deaf, then live, and never asks in vain', async () => {
  const data = home.env.POSTBELL_HOME as string;
  const socketPath = path.join(data, 'router-v1.sock');
  home.start(['router']);
  await until('a router runs', () => existsSync(socketPath));
  const faults: unknown[] = [];
  const attachment = new Attachment({
    address: { socketPath, token: () => readFileSync(path.join(data, 'router.token'), 'utf8').trim() },
    registration: {
      project: 'shop',
      principal_id: 'bob',
      session_id: 's1',
      adapter_kind: 'claude-listener',
      bell: 'listener',
      host_kind: 'claude',
    },
    clock: systemClock,
    random: systemRandom,
    startRouter: () => {},
    endRouter: () => '',
    take: async () => undefined,
    onFault: (fault) => faults.push(fault),
  });
  home.atEnd(() => attachment.close());
  await liveCards(home, 'shop', 1);
  const words = [
    'message',
    'send',
    '--project',
    'shop',
    '--sender',
    'a',
    '--payload-stdin',
    '--status',
    'update',
  ];
  const send = (key: string, ...more: string[]) =>
    answer(home.env, home.project, [...words, '--recipient', 'bob', '--idempotency-key', key, ...more], 'x');
  expect((await send('k1')).recipient_presence).toBe('live');
  await attachment.change({ bell: 'none', adapter_kind: 'poll' });
  expect((await send('k2')).recipient_presence).toBe('deaf');
  expect(await liveCards(home, 'shop', 1)).toMatchObject([{ generation: 2 }]);
  const exact = [
    'message',
    'send',
    '--project',
    'shop',
    '--sender',
    'a',
    '--payload-stdin',
    '--recipient',
    's1',
  ];
  const rest = ['--target-kind', 'session', '--idempotency-key', 'k3', '--json'];
  const refused = await postbell(home.env, home.project, [...exact, ...rest], 'x');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('no_bell')]);
  await attachment.change({ bell: 'listener', adapter_kind: 'claude-listener' });
  expect((await send('k4')).recipient_presence).toBe('live');
  expect(faults).toEqual([]);
});
