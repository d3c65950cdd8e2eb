// `postbell send` as a person uses it.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, postbell, program } from './postbell.ts';
import { liveCards, openSession } from './session.ts';
import { openTerminal } from './terminal.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

describe('postbell send', () => {
  it('takes lines typed at a terminal until an empty one, and ends', async () => {
    const terminal = openTerminal(home);
    terminal.type(`node ${program} send reviewer; echo "ended with $?"`);
    await until('it asks', () => terminal.screen().includes('Message (an empty line ends it):'));
    terminal.type('first line');
    terminal.type('second line');
    terminal.press('Enter');
    await until('it has ended', () => terminal.screen().includes('ended with 0'));
    terminal.end();
    const { messages } = await answer(home.env, home.project, [
      'inbox',
      'receive',
      '--recipient',
      'reviewer',
    ]);
    expect(messages).toMatchObject([{ payload: 'first line\nsecond line' }]);
  });

  it('says where else the name is live, and that a name was there before', async () => {
    home.start(['router']);
    const project = (await answer(home.env, home.project, ['send', 'x', '--json'], 'x')).project as string;
    const named = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'reviewer' });
    await liveCards(home, project, 1);
    const elsewhere = path.join(home.dir, 'elsewhere');
    mkdirSync(elsewhere);
    const lost = await postbell(home.env, elsewhere, ['send', 'reviewer'], 'hello');
    expect(lost.stdout).toContain(
      `no session ever registered under that name in this project; the message waits. One is live in "${project}": send from there, or with --project.`,
    );
    expect((await postbell(home.env, elsewhere, ['send', 'nobody'], 'hello')).stdout).not.toContain(
      'is live',
    );

    await named.close();
    await liveCards(home, project, 0);
    const unnamed = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1' });
    await liveCards(home, project, 1);
    const before = await postbell(home.env, home.project, ['send', 'reviewer'], 'hello');
    expect(before.stdout).toContain('its last session has disconnected; the message waits.');
    await unnamed.close();
  });

  it('takes the project that is named, also where the directory has none', async () => {
    const broken = path.join(home.dir, 'broken');
    mkdirSync(broken);
    writeFileSync(path.join(broken, '.git'), 'gitdir: /nonexistent');
    expect(await postbell(home.env, broken, ['send', 'x'], 'hello')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^postbell: project_unavailable/),
    });
    const sent = await answer(home.env, broken, ['send', 'x', '--project', 'p', '--json'], 'hello');
    expect(sent.project).toBe('p');
    expect((await postbell(home.env, broken, ['read', 'x', '--project', 'p'])).stdout).toContain('  hello\n');
  });

  it('is sent in the name of the session it is called from, else of the account', async () => {
    const agent = { ...home.env, CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'builder' };
    expect((await answer(agent, home.project, ['send', 'x', '--json'], 'hello')).sender).toBe('builder');
    const person = (await answer(home.env, home.project, ['send', 'x', '--json'], 'hello')).sender as string;
    expect(person).not.toBe('builder');
    expect(person).toMatch(/./);
  });
});
