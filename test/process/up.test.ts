// `postbell up`: plain lines without a terminal, a screen with one, and a clean end.

import { rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, until } from './home.ts';
import { answer, postbell, program } from './postbell.ts';
import { openSession } from './session.ts';
import { openTerminal } from './terminal.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

describe('postbell up', () => {
  it('prints the three steps of a first start, then what happens, and ends with 0 at a signal', async () => {
    const up = home.start(['up']);
    await until('it runs', () => up.stdout().includes('router running'));
    expect(up.stdout()).toMatch(
      /\nclaude plugin marketplace add .+ && claude plugin install postbell@postbell\n/,
    );
    expect(up.stdout()).toMatch(/\nPOSTBELL_RECIPIENT=reviewer claude\n/);
    expect(up.stdout()).toMatch(/\necho .* \| node .*postbell\.cjs send reviewer\n/);
    const session = await openSession(home, { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'reviewer' });
    await until('the session shows', () =>
      up.stdout().includes('live      "reviewer"  session "s1"  (bell listener)'),
    );
    await answer(home.env, home.project, ['send', 'reviewer', '--json'], 'SENTINEL body');
    await until('the acceptance shows', () =>
      /handed .* session "s1" {2}\(notice to claude-listener; not known to be read\)/.test(up.stdout()),
    );
    const { data } = await session.call('receive_messages', {});
    await session.call('acknowledge_messages', {
      messages: (data.messages as { receipt: object }[]).map(({ receipt }) => receipt),
    });
    await until('the intake shows', () => /taken in .* by "reviewer" {2}\(ingested\)/.test(up.stdout()));
    await session.close();
    await until('the end shows', () => /gone {6}"reviewer" {2}session "s1"/.test(up.stdout()));
    expect(up.stdout()).not.toContain('SENTINEL');
    up.child.kill('SIGTERM');
    expect(await up.exited).toEqual({ code: 0, signal: null });
    expect(up.stderr()).toBe('');
    const again = home.start(['up']);
    await until('it runs again', () => again.stdout().includes('router running'));
    expect(again.stdout()).not.toContain('First start');
  });

  it('watches beside a router that runs already, and takes over when that one ends', async () => {
    const first = home.start(['up']);
    await until('the first runs', () => first.stdout().includes('router running'));
    const second = home.start(['up']);
    await until('the second watches', () => second.stdout().includes('watching: another router runs'));
    first.child.kill('SIGTERM');
    await first.exited;
    await until(
      'a router runs again',
      async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0,
    );
    expect((await answer(home.env, home.project, ['router', 'status'])).pid).toBe(second.pid);
  });

  it('takes its place again where its socket was removed', async () => {
    const up = home.start(['up']);
    await until('it runs', () => up.stdout().includes('router running'));
    const status = async () => (await postbell(home.env, home.project, ['router', 'status'])).stdout;
    await until('it answers', async () => (await status()) !== '');
    rmSync(path.join(home.env.POSTBELL_HOME as string, 'router-v1.sock'));
    await until('it answers again', async () => (await status()).includes(`"pid":${up.pid}`));
    up.child.kill('SIGTERM');
    expect((await up.exited).code).toBe(0);
  });

  it('draws one screen at a terminal and gives it back', async () => {
    const terminal = openTerminal(home, 60);
    const { screen } = terminal;
    terminal.type(`node ${program} up; echo "ended with $?"`);
    await until('the screen is drawn', () => /^Postbell 0\.1\.0 {2}router running/.test(screen()));
    expect(screen()).toContain('No session is connected.');
    // A command that is cut does something else.
    expect(screen().replaceAll('\n', '')).toContain(`node ${program} send reviewer`);
    await answer(home.env, home.project, ['send', 'somebody', '--json'], 'x');
    await until('the message shows', () => /stored +….{6} /.test(screen()));
    await until('who waits shows', () =>
      /Mail waits:\n {2}"somebody" {2}in "shop~[0-9a-f]{4}…" {2}1\n/.test(screen()),
    );
    terminal.press('C-c');
    await until('the terminal is given back', () => screen().includes('ended with 0'));
    expect(screen()).not.toContain('No session is connected.');
    terminal.end();
  });
});
