// The owner's live check of Codex at a terminal, with a thread that the test plays: a registration by the queue's name, and a
// real server for its tools, in the check's own data directory. A program that only answers stands in for Codex.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { Attachment } from '../../src/router/attachment.ts';
import type { LiveReport } from '../../tools/live-report.mjs';
import { type Home, makeHome, until } from './home.ts';
import { answer, type Env, finished, postbell, root } from './postbell.ts';
import { openSession } from './session.ts';
import { openTerminal, type TestTerminal } from './terminal.ts';

const tool = path.join(root, 'tools', 'live-check.mjs');
const thread = '0199aaaa-0000-7000-8000-000000000001';
const principal = `codex-thread-${thread}`;

const fakeCodex = `#!/bin/sh
case "$1 $2" in
  --version*) echo "codex-cli 0.171.0" ;;
  "login status") test -f "$CODEX_HOME/auth.json" ;;
  plugin*) echo "$CODEX_HOME $*" >> "$HOME/codex.argv"; test ! -f "$CODEX_HOME/full" || { echo "Error: no room" >&2; exit 1; } ;;
esac
`;

let home: Home;
/** Outside of every temporary directory, as the check wants it. */
let codexHome: string;
beforeEach(() => {
  home = makeHome();
  codexHome = mkdtempSync(path.join(homedir(), '.postbell-live-'));
  writeFileSync(path.join(codexHome, 'auth.json'), '{}');
  const bin = path.join(home.dir, 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'codex'), fakeCodex, { mode: 0o755 });
  home.env.PATH = `${bin}:${home.env.PATH}`;
  home.env.TMPDIR = home.dir;
});
afterEach(async () => {
  await home.end();
  rmSync(codexHome, { recursive: true, force: true });
});

const made = () => readdirSync(home.dir).filter((name) => name.startsWith('pbl-'));
const outFile = () => path.join(home.dir, '.qa', 'report.json');
const argv = () => readFileSync(path.join(home.dir, 'codex.argv'), 'utf8').trim().split('\n');
const report = () => JSON.parse(readFileSync(outFile(), 'utf8')) as LiveReport;
const results = () => report().rows.map(({ id, result }) => [id, result]);

interface Begun {
  terminal: TestTerminal;
  /** Waits until the screen shows it so many times. */
  asked(what: RegExp, times?: number): Promise<void>;
  /** The screen without its line ends. */
  text(): string;
}

function begin(words = ''): Begun {
  const terminal = openTerminal(home, 200, 150);
  home.atEnd(() => terminal.end());
  const flags = `--host codex --codex-home ${codexHome} --out ${outFile()}`;
  terminal.type(`${process.execPath} ${tool} ${flags} ${words}; echo ended $?`);
  const text = () => terminal.screen().replaceAll('\n', '');
  const asked = (what: RegExp, times = 1) =>
    until(
      `${what}`,
      () => (terminal.screen().match(new RegExp(what, 'g')) ?? []).length >= times,
      25_000,
    ).catch((error: Error) => {
      throw new Error(`${error.message}; the screen:\n${terminal.screen()}`);
    });
  return { terminal, asked, text };
}

/** A thread of Codex as its companion registers it: its queue takes every notice. */
async function play(env: Env, accepts: { count: number }): Promise<Attachment> {
  const data = env.POSTBELL_HOME as string;
  const { project } = await answer(env, home.project, ['send', 'nobody', '--json'], 'x');
  const attachment = new Attachment({
    address: {
      socketPath: path.join(data, 'router-v1.sock'),
      token: () => readFileSync(path.join(data, 'router.token'), 'utf8').trim(),
    },
    registration: {
      project: project as string,
      principal_id: principal,
      session_id: thread,
      adapter_kind: 'codex-queue',
      bell: 'codex-queue',
      host_kind: 'codex',
    },
    clock: systemClock,
    random: systemRandom,
    startRouter: () => {},
    endRouter: () => '',
    take: async () => {
      accepts.count += 1;
      return { content: 'notice', receipt: { state: 'host_queued', thread_id: thread } };
    },
    onFault: (fault) => {
      throw fault;
    },
  });
  home.atEnd(() => attachment.close());
  const line = {
    hook: 'session-start',
    time: new Date().toISOString(),
    host: 'codex',
    outcome: 'skipped',
    reason: '',
  };
  writeFileSync(path.join(data, 'hook-outcomes.jsonl'), `${JSON.stringify(line)}\n`, { mode: 0o600 });
  return attachment;
}

/** Takes the mail in by the thread's own server, and answers with what `say` makes of the body. */
async function obey(env: Env, say: (body: string) => string): Promise<void> {
  const session = await openSession(
    home,
    { ...env, POSTBELL_SESSION: thread, POSTBELL_RECIPIENT: principal },
    ['--no-register'],
  );
  const { data } = await session.call('receive_messages', {});
  const [mail] = data.messages as { message_id: string; payload: string; receipt: object }[];
  if (mail === undefined) throw new Error('no mail');
  await session.call('acknowledge_messages', { messages: [mail.receipt] });
  const sent = await session.call('message', {
    action: 'send',
    sender: 'me',
    recipient: 'live-check',
    reply_to: mail.message_id,
    payload: say(mail.payload),
    idempotency_key: mail.message_id,
  });
  expect(sent.isError).toBe(false);
  await session.close();
}

const codeIn = (body: string) => /Read-back code: (\S+)/.exec(body)?.[1] ?? '';

/** Up to the first send: the router of the check, and a thread in it. */
async function startedThread(at: Begun, accepts: { count: number }) {
  await at.asked(/When it has answered, press Enter here:/);
  const data = path.join(home.dir, made()[0] as string);
  const env = { ...home.env, POSTBELL_HOME: data };
  home.start(['router'], { POSTBELL_HOME: data });
  await until(
    'a router answers',
    async () => (await postbell(env, home.project, ['router', 'status'])).code === 0,
  );
  const attachment = await play(env, accepts);
  at.terminal.press('Enter');
  await at.asked(/Press Enter to send:/);
  at.terminal.press('Enter');
  await until('the queue took a notice', () => accepts.count === 1);
  return { env, attachment };
}

describe('the live check of Codex', () => {
  it('[SES-150, SES-153] installs the plugin into the disposable home, and passes a thread that starts, is rung, resumed and rung again, and refuses when it has ended', async () => {
    const at = begin();
    const accepts = { count: 0 };
    const { env, attachment } = await startedThread(at, accepts);
    expect(argv()).toEqual([
      `${codexHome} plugin marketplace add ${root}`,
      `${codexHome} plugin add postbell@postbell`,
    ]);
    expect(at.text()).toContain(`CODEX_HOME='${codexHome}' POSTBELL_HOME='${env.POSTBELL_HOME}'`);
    await obey(env, codeIn);
    await at.asked(/and resume it:/);
    expect(at.text()).toContain(`codex resume --no-daemon ${thread}`);
    await attachment.close();
    const again = await play(env, accepts);
    at.terminal.press('Enter');
    await at.asked(/Press Enter to send:/, 2);
    at.terminal.press('Enter');
    await until('the queue took another', () => accepts.count === 2);
    await obey(env, codeIn);
    await at.asked(/End the session there \(\/quit\), then press Enter:/);
    await again.close();
    at.terminal.press('Enter');
    await at.asked(/ended \d/);
    expect(results()).toEqual([
      ['session-start', 'pass'],
      ['native-delivery', 'pass'],
      ['resume', 'pass'],
      ['stopped-session', 'pass'],
    ]);
    expect([report().result, at.terminal.screen().includes('ended 0')]).toEqual(['passed', true]);
    expect(report().versions).toMatchObject({ host: '0.171.0', node: process.versions.node });
    expect(statSync(outFile()).mode & 0o777).toBe(0o600);
    expect([made(), existsSync(path.join(codexHome, 'auth.json'))]).toEqual([[], true]);
    expect(at.text()).toContain(`remove exactly that directory yourself, rm -r '${codexHome}'`);
  }, 90_000);

  it.each([
    ['that only accepts', undefined, /the queue took a notice .*no call of its own/],
    ['that answers without the code', () => 'I did as you said', /no answer of the thread with the code/],
  ])(
    '[HOST-278] does not pass a host %s',
    async (_what, say, why) => {
      const at = begin('--patience 3');
      const { env } = await startedThread(at, { count: 0 });
      if (say !== undefined) await obey(env, say);
      await at.asked(/and resume it:/);
      at.terminal.press('C-c');
      await at.asked(/ended 1/);
      expect(report().result).toBe('stopped');
      expect(report().rows.find(({ id }) => id === 'native-delivery')).toMatchObject({
        result: 'fail',
        text: expect.stringMatching(why),
      });
    },
    60_000,
  );
});

describe('[SES-154] the disposable home', () => {
  const refused = async (at: string | undefined) => {
    const terminal = openTerminal(home, 250, 30);
    const named = at === undefined ? '' : `--codex-home '${at}'`;
    terminal.type(`${process.execPath} ${tool} --host codex ${named}; echo ended $?`);
    await until('the refusal', () => terminal.screen().includes('ended 1'), 20_000);
    const text = terminal.screen().replaceAll('\n', '');
    terminal.end();
    expect([made(), existsSync(path.join(home.dir, 'codex.argv'))]).toEqual([[], false]);
    return text;
  };

  it('is refused in a temporary directory, as the everyday home, and without a login, before anything is made', async () => {
    const inside = path.join(home.dir, 'inside');
    mkdirSync(inside);
    writeFileSync(path.join(inside, 'auth.json'), '{}');
    expect(await refused(inside)).toMatch(/lies in a temporary directory of the system/);
    expect(await refused('/tmp')).toMatch(/lies in a temporary directory of the system/);
    expect(await refused(path.join(codexHome, 'gone'))).toMatch(/there is no such directory/);
    expect(await refused(path.join(codexHome, 'auth.json'))).toMatch(/there is no such directory/);
    expect(await refused(undefined)).toMatch(/name a disposable home of Codex/);
    home.env.HOME = codexHome;
    mkdirSync(path.join(codexHome, '.codex'));
    expect(await refused(path.join(codexHome, '.codex'))).toMatch(/is the home of your everyday Codex/);
    home.env.HOME = home.dir;
    rmSync(path.join(codexHome, 'auth.json'));
    expect(await refused(codexHome)).toMatch(/is not logged in: CODEX_HOME='[^']+' codex login/);
  }, 60_000);

  it('is named at the end of a run that failed, too, and stays', async () => {
    writeFileSync(path.join(codexHome, 'full'), '');
    const at = begin();
    await at.asked(/if one runs, then press Enter:/);
    at.terminal.press('Enter');
    await at.asked(/ended 1/);
    expect(report().rows.at(-1)).toMatchObject({
      id: 'stopped',
      text: expect.stringMatching(/^codex plugin marketplace add \S+ failed: Error: no room$/),
    });
    expect(at.text()).toContain(`${codexHome} holds a real login. This check never deletes it`);
    expect([existsSync(path.join(codexHome, 'auth.json')), made()]).toEqual([true, []]);
  }, 40_000);
});

describe('[SES-150] without a terminal', () => {
  it('it is refused for either host, and so are words of the other', async () => {
    const said = async (...words: string[]) => {
      const { code, stderr } = await finished(process.execPath, [tool, ...words], home.env, home.project);
      expect([code, made()]).toEqual([1, []]);
      return stderr;
    };
    expect(await said('--host', 'codex', '--codex-home', codexHome)).toMatch(
      /at a terminal, and there is none/,
    );
    expect(await said('--host', 'claude')).toMatch(/at a terminal, and there is none/);
    expect(await said('--host', 'codex', '--channel')).toMatch(/--channel is for --host claude alone/);
    expect(await said('--host', 'claude', '--codex-home', codexHome)).toMatch(/for --host codex alone/);
    expect(await said('--host', 'gemini')).toMatch(/name the host: --host claude, or --host codex/);
  });
});
