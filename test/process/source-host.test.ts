// What a client calls itself is provenance: shortened and without control characters, and still text.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { openOther } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

it.each([
  ['63 characters', 'x'.repeat(63), 'x'.repeat(63)],
  ['64 characters', 'x'.repeat(64), 'x'.repeat(64)],
  ['65 characters', 'x'.repeat(65), 'x'.repeat(64)],
  ['65 astral characters', '\u{1f426}'.repeat(65), '\u{1f426}'.repeat(64)],
  ['control characters', '\u0000a\u001b[31m\u009bb\n', 'a[31mb'],
  ['a lone surrogate', 'a\ud800b', 'a\ufffdb'],
  ['nothing but control characters', '\u0000\n', 'mcp'],
])('a client\u2019s name of %s', async (_, name, source_host) => {
  const session = await openOther(home, { CLAUDE_CODE_SESSION_ID: 's1' }, { words: ['--no-register'], name });
  const letter = { project: 'p', sender: 'a', recipient: 'b', idempotency_key: 'k', payload: 'x' };
  const { data } = await session.call('message', { action: 'send', ...letter });
  expect(data.provenance).toMatchObject({ transport: 'mcp', source_host });
  const { message_id } = data;
  const scope = { project: 'p', recipient: 'b', message_id };
  const fetched = await session.call('message', { action: 'fetch', ...scope });
  expect(fetched.data.provenance).toMatchObject({ source_host });
});
