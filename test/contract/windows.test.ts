// What counts on Windows, where nobody can check who may read a file.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { principalOf, recipientOf } from '../../src/compose/recipient.ts';
import { temporaryDirectory } from './desk.ts';

const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor;
afterEach(() => Object.defineProperty(process, 'platform', platform));

it('[SES-141] the principal of the host config counts as absent there: no recipient but the session\u2019s own', () => {
  const home = temporaryDirectory();
  const hosts = path.join(home, 'hosts');
  mkdirSync(hosts, { mode: 0o700 });
  writeFileSync(
    path.join(hosts, 'claude.json'),
    JSON.stringify({ version: 1, host: 'claude', principal_id: 'bob' }),
    {
      mode: 0o600,
    },
  );
  const environment = { POSTBELL_HOME: home, HOME: home };
  const found = () => [recipientOf(environment, 'claude'), principalOf(environment, 'claude', 's1')];
  expect(found()).toEqual([{ declared: false, named: 'bob' }, 'bob']);
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' });
  expect(found()).toEqual([{ declared: false }, 'claude-session-s1']);
  // What the owner declares at launch counts all the same.
  expect(recipientOf({ ...environment, POSTBELL_RECIPIENT: 'carol' }, 'claude')).toEqual({
    declared: true,
    named: 'carol',
  });
});
