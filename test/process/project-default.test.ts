// Over MCP a call without a project goes to the one that the session is bound to, and never to where its server runs.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, type Env } from './postbell.ts';
import { openOther } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

/** The server always runs in the home itself. */
async function receives(more: Env, roots?: readonly string[] | 'untold') {
  const env = { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'bob', CLAUDE_PROJECT_DIR: '', ...more };
  const session = await openOther(home, env, { words: ['--no-register'], ...(roots && { roots }) });
  const received = await session.call('receive_messages', {});
  const named = await session.call('receive_messages', { project: 'named' });
  expect(named.isError).toBe(false);
  const { error, messages } = received.data as { error?: { code: string }; messages?: { payload: string }[] };
  return error?.code ?? messages?.map(({ payload }) => payload);
}

it('[MSG-182] Claude\u2019s directory, else the one root; none and several are refusals', async () => {
  const other = path.join(home.dir, 'other');
  mkdirSync(other);
  for (const directory of [home.project, other, home.dir])
    await answer(home.env, directory, ['send', 'bob', '--json'], path.basename(directory));
  const [shop, second] = [home.project, other].map((directory) => pathToFileURL(directory).href) as [
    string,
    string,
  ];
  expect(await receives({})).toBe('project_unavailable');
  expect(await receives({}, [])).toBe('project_unavailable');
  expect(await receives({}, 'untold')).toBe('project_unavailable');
  expect(await receives({}, ['https://shop', 'file:///nowhere/at/all'])).toBe('project_unavailable');
  expect(await receives({}, [shop, second])).toBe('project_ambiguous');
  expect(await receives({}, [second])).toEqual(['other']);
  expect(await receives({ CLAUDE_PROJECT_DIR: home.project }, [second])).toEqual(['shop']);
});
