// What a payload says is in the store, and nowhere else that somebody could look.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, postbell } from './postbell.ts';
import { processesOf } from './processes.ts';
import { liveCards, openSession, type Session } from './session.ts';
import { typed } from './typed.ts';

const sentinel = 'SENTINEL-4b1d';

let home: Home;
let router: Started;
let session: Session;
let project: string;
beforeEach(async () => {
  home = makeHome();
  router = home.start(['router']);
  project = (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;
  session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'bob' });
  await liveCards(home, project, 1);
});
afterEach(() => home.end());

/** Words and environment of every process of this home. */
const ours = (): string[] =>
  processesOf(home.dir).map(({ words, environment }) => [...words, ...environment].join('\0'));

const letter = (over: object): Record<string, unknown> => ({
  project,
  sender: 'alice',
  recipient: 'bob',
  idempotency_key: 'k',
  payload: sentinel,
  ...over,
});

/** Calls with the sentinel inside, most of which are refused. */
const calls: [string, (over?: object) => Record<string, unknown>][] = [
  ['stored', () => letter({})],
  [
    'stored as JSON',
    () =>
      letter({ idempotency_key: 'j', content_type: 'application/json', payload: { [sentinel]: sentinel } }),
  ],
  ['another content of the key', () => letter({ payload: `${sentinel} again` })],
  ['too large', () => letter({ payload: sentinel.repeat(6_000) })],
  ['a wrong field beside it', () => letter({ recipient: '/x' })],
  [
    'a session that is gone',
    () => letter({ idempotency_key: 'g', recipient: 'gone', target_kind: 'session' }),
  ],
  [
    'too large for a session',
    () =>
      letter({
        idempotency_key: 'n',
        recipient: 's1',
        target_kind: 'session',
        payload: sentinel.repeat(2_000),
      }),
  ],
  ['to the session', () => letter({ idempotency_key: 's', recipient: 's1', target_kind: 'session' })],
];

it('[SES-072] a payload is in no argument, environment, error, log, file name or other inbox, nor is the token', async () => {
  const said: string[] = [];
  const held = home.start([
    'message',
    'send',
    ...typed('send', letter({ idempotency_key: 'h' }))[0].slice(2),
  ]);
  held.child.stdin?.write(sentinel);
  await until('the command runs', () => ours().some((words) => words.includes('--payload-stdin')));
  for (const [, request] of calls) {
    const [words, input] = typed('send', request());
    const { code, stdout, stderr } = await postbell(home.env, home.project, [...words, '--json'], input);
    said.push(stderr, stdout);
    const { isError, data } = await session.call('message', { action: 'send', ...request() });
    expect(isError).toBe(code !== 0);
    said.push(JSON.stringify(data), ...ours());
  }
  held.child.stdin?.end();
  expect((await held.exited).code).toBe(0);
  const broken = await postbell(
    home.env,
    home.project,
    typed('send', { ...letter({}), content_type: 'application/json' })[0],
    `{"${sentinel}`,
  );
  expect(broken.stderr).toMatch(/^postbell: invalid_request: /);
  said.push(broken.stderr, held.stderr(), session.stderr(), router.stderr(), router.stdout());
  for (const recipient of ['carol', 'alice', 'nobody']) {
    const words = ['inbox', 'receive', '--project', project, '--recipient', recipient];
    said.push(JSON.stringify(await answer(home.env, home.project, words)));
  }
  said.push(...readdirSync(home.dir, { recursive: true, encoding: 'utf8' }));
  const data = home.env.POSTBELL_HOME as string;
  const token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
  expect(said.filter((text) => text.includes(sentinel) || text.includes(token))).toEqual([]);
  const holding = readdirSync(data, { withFileTypes: true, recursive: true })
    .filter((file) => file.isFile() && readFileSync(path.join(file.parentPath, file.name)).includes(sentinel))
    .map(({ name }) => name);
  expect(holding.filter((name) => !/^postbell\.db(-wal|-shm)?$/.test(name))).toEqual([]);
  expect(router.stderr()).not.toBe('');
  const mine = await session.call('receive_messages', {});
  expect((mine.data.messages as { payload: unknown }[]).map(({ payload }) => payload)).toContain(sentinel);
});
