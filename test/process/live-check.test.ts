// The owner's live check at a terminal, with a session that the test plays: a real server and a real listener, in the check's
// own data directory.

import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LiveReport } from '../../tools/live-report.mjs';
import { type Home, makeHome, until } from './home.ts';
import { type Env, finished, postbell, root, stopRouter } from './postbell.ts';
import { openSession, type Session } from './session.ts';
import { openTerminal, type TestTerminal } from './terminal.ts';

const tool = path.join(root, 'tools', 'live-check.mjs');
let home: Home;
beforeEach(() => {
  home = makeHome();
  const bin = path.join(home.dir, 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'claude'), '#!/bin/sh\necho "9.9.9 (Claude Code)"\n', { mode: 0o755 });
  home.env.PATH = `${bin}:${home.env.PATH}`;
  home.env.TMPDIR = home.dir;
});
afterEach(() => home.end());

const made = () => readdirSync(home.dir).filter((name) => name.startsWith('pbl-'));
const outFile = () => path.join(home.dir, '.qa', 'report.json');
const reportOf = () => JSON.parse(readFileSync(outFile(), 'utf8')) as LiveReport;
const row = (report: LiveReport, id: string) => report.rows.find((one) => one.id === id);

/** The check at a terminal, up to its first question. */
async function begin(
  words = '',
): Promise<{ terminal: TestTerminal; data: string; asked(what: RegExp): Promise<void> }> {
  const terminal = openTerminal(home, 200, 60);
  home.atEnd(() => terminal.end());
  terminal.type(`${process.execPath} ${tool} --host claude --out ${outFile()} ${words}; echo ended $?`);
  const asked = (what: RegExp) =>
    until(`${what}`, () => what.test(terminal.screen()), 20_000).catch((error: Error) => {
      throw new Error(`${error.message}; the screen:\n${terminal.screen()}`);
    });
  await asked(/Type \/mcp/);
  return { terminal, data: path.join(home.dir, made()[0] as string), asked };
}

interface Played {
  session: Session;
  /** Waits for the notice, as the host does. */
  woken(): Promise<void>;
  hook(event: string): Promise<unknown>;
}

/** A session of Claude Code as the plugin makes one, with the check's data directory. */
async function play(data: string, more: Env = {}, listens = true): Promise<Played> {
  const env = {
    POSTBELL_HOME: data,
    CLAUDE_CODE_SESSION_ID: 's1',
    CLAUDE_PROJECT_DIR: home.project,
    ...more,
  };
  const session = await openSession(home, env);
  const hook = (event: string) =>
    postbell(
      { ...home.env, ...env },
      home.project,
      ['hook', event, '--host', 'claude'],
      '{"session_id":"s1","source":"startup"}',
    );
  await hook('session-start');
  const listener = listens ? home.start(['wait'], env) : undefined;
  listener?.child.stdin?.end('{"session_id":"s1","hook_event_name":"SessionStart"}');
  return { session, hook, woken: async () => expect((await listener?.exited)?.code).toBe(2) };
}

/** Takes the mail in, and answers it with what `say` makes of the body. */
async function obey({ session }: Played, say: (body: string) => string | undefined): Promise<void> {
  const { data } = await session.call('receive_messages', {});
  const [mail] = data.messages as { message_id: string; payload: string; receipt: object; project: string }[];
  if (mail === undefined) throw new Error('no mail');
  await session.call('acknowledge_messages', { messages: [mail.receipt] });
  const payload = say(mail.payload);
  if (payload === undefined) return;
  const answer = {
    action: 'send',
    sender: 'me',
    recipient: 'live-check',
    reply_to: mail.message_id,
    payload,
  };
  const sent = await session.call('message', { ...answer, idempotency_key: 'k1' });
  expect(sent.isError).toBe(false);
}

const codeIn = (body: string) => /Read-back code: (\S+)/.exec(body)?.[1];

async function identified(at: Awaited<ReturnType<typeof begin>>): Promise<void> {
  at.terminal.type('plugin:postbell:postbell');
  await at.asked(/Type \/hooks/);
  at.terminal.type('SessionStart, UserPromptSubmit, Stop');
  await at.asked(/Looking for the session/);
}

/** Up to the send. */
async function sent(at: Awaited<ReturnType<typeof begin>>): Promise<void> {
  await at.asked(/Press Enter to send/);
  at.terminal.press('Enter');
  await at.asked(/Sent\. Allow/);
}

async function ended(at: Awaited<ReturnType<typeof begin>>, session?: Session): Promise<LiveReport> {
  await at.asked(/then press Enter/);
  await session?.close();
  at.terminal.press('Enter');
  await at.asked(/ended \d/);
  return reportOf();
}

describe('the live check of Claude Code', () => {
  it('passes a session that is woken, takes the message in and answers with the code; its report is private and says what it does not show', async () => {
    const at = await begin();
    const played = await play(at.data);
    await identified(at);
    await sent(at);
    await played.woken();
    // The host fires it for its own wakes, too.
    await played.hook('prompt');
    await obey(played, codeIn);
    const report = await ended(at, played.session);
    expect([report.result, at.terminal.screen().includes('ended 0')]).toEqual(['passed', true]);
    for (const id of ['intake', 'read-back', 'wake']) expect(row(report, id)?.result).toBe('pass');
    expect(report.versions).toEqual({
      postbell: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.versions.node,
      host: '9.9.9',
      platform: expect.stringContaining(process.platform),
    });
    expect(report.limitations).toContain('Nothing is said of channels.');
    expect(statSync(outFile()).mode & 0o777).toBe(0o600);
    expect(made()).toEqual([]);
  }, 60_000);

  it.each([
    ['that only accepts', undefined],
    ['that takes the message in and says nothing', () => undefined],
    ['that answers without the code', () => 'I did as you said'],
  ])(
    '[SES-151, HOST-278] does not pass a host %s',
    async (_what, say) => {
      const at = await begin('--patience 5');
      const played = await play(at.data);
      await identified(at);
      await sent(at);
      await played.woken();
      if (say !== undefined) await obey(played, say);
      const report = await ended(at, played.session);
      expect([report.result, at.terminal.screen().includes('ended 1')]).toEqual(['not passed', true]);
      expect(row(report, 'handed-over')?.text).toMatch(/claude-listener accepted it/);
      expect(row(report, 'intake')?.result).toBe(say === undefined ? 'fail' : 'pass');
      expect(row(report, 'read-back')?.result).toBe('fail');
      expect(row(report, 'wake')?.result).toBe('pass');
    },
    60_000,
  );
});

describe('[SES-155] what the owner sees comes first', () => {
  it('a server or hooks that cannot be identified end the check before anything is sent', async () => {
    for (const words of [
      [''],
      ['plugin:other:other'],
      ['plugin:postbell:postbell', 'SessionStart'],
      ['postbell', ''],
    ]) {
      const at = await begin();
      for (const [nth, word] of words.entries()) {
        if (nth > 0) await at.asked(/Type \/hooks/);
        at.terminal.type(word);
      }
      const report = await ended(at);
      expect(report.result).toBe('stopped');
      expect(report.rows.at(-1)?.text).toMatch(/could not be identified/);
      expect(report.rows.map(({ id }) => id)).not.toContain('stored');
      expect(made()).toEqual([]);
      at.terminal.end();
    }
  }, 60_000);

  it('print mode is refused: by its words, and where nobody sits at the session', async () => {
    for (const word of ['-p', '--print', '--print=x']) {
      const { code, stderr } = await finished(
        process.execPath,
        [tool, '--host', 'claude', word],
        home.env,
        home.project,
      );
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^live-check: print mode is refused/)]);
    }
    for (const more of [{ CLAUDE_CODE_SESSION_ATTENDED: '0' }, { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' }]) {
      const at = await begin();
      const played = await play(at.data, more);
      await identified(at);
      const report = await ended(at, played.session);
      expect(report.rows.at(-1)?.text).toMatch(/print mode is refused/);
      expect(report.result).toBe('stopped');
      expect(made()).toEqual([]);
      at.terminal.end();
    }
  }, 60_000);

  it('a reminder after the delivery is not a pass, even where the session then answers', async () => {
    const at = await begin();
    const heard = await play(at.data, {}, false);
    await identified(at);
    // No listener waits: what is left is the reminder of a prompt that a person types.
    await sent(at);
    await heard.hook('prompt');
    await obey(heard, codeIn);
    const report = await ended(at, heard.session);
    expect(row(report, 'read-back')?.result).toBe('pass');
    expect(row(report, 'wake')).toMatchObject({
      result: 'fail',
      text: expect.stringMatching(/reminded|no listener/),
    });
    expect(report.result).toBe('not passed');
  }, 60_000);

  it('sessions whose server or hooks have another data directory are not found', async () => {
    const at = await begin('--patience 2');
    await identified(at);
    const report = await ended(at);
    expect(report.rows.at(-1)?.text).toMatch(/no session of Claude Code whose server and hooks have /);
  }, 60_000);
});

describe('[SES-156] the data directory of the check', () => {
  it('is its own, and removed at the end unless it is to be kept', async () => {
    for (const keep of [false, true]) {
      const at = await begin(keep ? '--keep' : '');
      expect(statSync(at.data).mode & 0o777).toBe(0o700);
      at.terminal.press('C-c');
      await at.asked(/ended 1/);
      expect(made()).toHaveLength(keep ? 1 : 0);
      expect(at.terminal.screen().includes(`Kept: ${at.data}`)).toBe(keep);
      at.terminal.end();
    }
    expect(existsSync(path.join(home.dir, 'data'))).toBe(false);
  }, 60_000);

  it('stays where the owner gives up while a session runs with it', async () => {
    const at = await begin();
    const { session } = await play(at.data);
    await identified(at);
    await at.asked(/Press Enter to send/);
    at.terminal.press('C-c');
    await at.asked(/ended 1/);
    expect(at.terminal.screen().replaceAll('\n', '')).toContain(`A session still runs with ${at.data}`);
    expect(existsSync(path.join(at.data, 'postbell.db'))).toBe(true);
    await session.close();
    // The session's server may have started a router anew before it ended.
    for (let looks = 0; looks < 10; looks += 1) {
      await stopRouter({ ...home.env, POSTBELL_HOME: at.data }, home.project);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }, 60_000);

  it('a report that could not be written is refused before anything is asked', async () => {
    for (const out of ['', home.dir, '/dev/null/x']) {
      const terminal = openTerminal(home, 200, 60);
      terminal.type(`${process.execPath} ${tool} --host claude --out '${out}'; echo ended $?`);
      await until('the refusal', () => terminal.screen().includes('ended 1'), 20_000);
      expect(terminal.screen()).toContain('live-check: --out cannot be written: ');
      terminal.end();
    }
    expect(made()).toEqual([]);
  }, 30_000);

  it('a socket that would not fit in it is refused before anything is made, with what to do', async () => {
    const long = path.join(home.dir, 'x'.repeat(90));
    mkdirSync(long);
    home.env.TMPDIR = long;
    const terminal = openTerminal(home, 200, 60);
    home.atEnd(() => terminal.end());
    terminal.type(`${process.execPath} ${tool} --host claude; echo ended $?`);
    await until('the refusal', () => terminal.screen().includes('ended 1'), 20_000);
    expect(terminal.screen().replaceAll('\n', '')).toMatch(
      /live-check: the path of the socket has .* set TMPDIR to a shorter directory/,
    );
    expect(readdirSync(long)).toEqual([]);
  });
});

describe('without a terminal', () => {
  it('it is refused, and other words are', async () => {
    const refused = async (...words: string[]) => {
      const { code, stderr } = await finished(process.execPath, [tool, ...words], home.env, home.project);
      expect(code).toBe(1);
      return stderr;
    };
    expect(await refused('--host', 'claude')).toMatch(/run by its owner at a terminal, and there is none/);
    expect(await refused('--host', 'other')).toMatch(/--host claude/);
    expect(await refused('--host', 'claude', '--patience', '0')).toMatch(/--patience/);
    expect(made()).toEqual([]);
  });
});
