// Two directories of one name are two projects; what names a project holds no password.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, postbell } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

describe('the project of a directory', () => {
  it.each([false, true])(
    '[SES-013] keeps two unrelated ones of one name apart (repositories: %s): neither discovers nor receives of the other',
    async (repositories) => {
      const [one, two] = [path.join(home.dir, 'x', 'shared'), path.join(home.dir, 'y', 'shared')];
      for (const place of [one, two]) {
        mkdirSync(place, { recursive: true });
        if (repositories) execFileSync('git', ['init', '--quiet'], { cwd: place, env: home.env });
      }
      home.start(['router']);
      for (const [place, session, body] of [
        [one, 'in x', 'for x'],
        [two, 'in y', 'for y'],
      ] as const) {
        await openSession(home, {
          CLAUDE_PROJECT_DIR: place,
          CLAUDE_CODE_SESSION_ID: session,
          POSTBELL_RECIPIENT: 'alice',
        });
        const { project } = await answer(home.env, place, ['send', 'alice', '--json'], body);
        expect(project).toMatch(/^shared~/);
        expect(await liveCards(home, project as string, 1)).toMatchObject([{ session_id: session, project }]);
      }
      for (const [place, body] of [
        [one, 'for x'],
        [two, 'for y'],
      ] as const) {
        const received = await answer(home.env, place, ['inbox', 'receive', '--recipient', 'alice']);
        expect(received.messages).toMatchObject([{ payload: body }]);
      }
    },
  );

  it('[SES-009] writes no password of its remote anywhere, and prints none', async () => {
    const git = (...words: string[]) => execFileSync('git', words, { cwd: home.project, env: home.env });
    git('init', '--quiet');
    git('remote', 'add', 'origin', 'https://alice:PASSWORD-7@git.example/x/shop.git');
    const router = home.start(['router']);
    const raw = home.start(['mcp'], { CLAUDE_CODE_SESSION_ID: 's1', CLAUDE_PROJECT_DIR: home.project });
    const sent = await postbell(home.env, home.project, ['send', 'alice', '--json'], 'x');
    const { project } = JSON.parse(sent.stdout) as { project: string };
    const initialize = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    for (const message of [
      { id: 1, method: 'initialize', params: initialize },
      { method: 'notifications/initialized' },
    ])
      raw.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    await liveCards(home, project, 1);
    const hook = await postbell(
      { ...home.env, CLAUDE_PROJECT_DIR: home.project },
      home.project,
      ['hook', 'session-start', '--host', 'claude'],
      JSON.stringify({ session_id: 's1', source: 'startup' }),
    );
    expect(hook.stdout).toContain(project);
    const wrong = await postbell(home.env, home.project, ['send', 's2', '--session'], 'x');
    const streams = [sent, hook, wrong].flatMap(({ stdout, stderr }) => [stdout, stderr]);
    streams.push(router.stdout(), router.stderr(), raw.stdout(), raw.stderr());
    const data = home.env.POSTBELL_HOME as string;
    const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    expect(files.map(({ name }) => name)).toContain('postbell.db-wal');
    const written = files.map((file) => readFileSync(path.join(file.parentPath, file.name), 'latin1'));
    for (const text of [...streams, ...written]) expect(text).not.toContain('PASSWORD-7');
    const plain = path.join(home.dir, 'plain');
    mkdirSync(plain);
    const without = 'https://git.example/x/shop';
    for (const words of [
      ['init', '--quiet'],
      ['remote', 'add', 'origin', without],
    ])
      execFileSync('git', words, { cwd: plain, env: home.env });
    expect((await answer(home.env, plain, ['send', 'alice', '--json'], 'x')).project).toBe(project);
  });
});
