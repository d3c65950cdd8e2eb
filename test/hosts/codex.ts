// Runs the real Codex, offline, in a throw-away home with the plugin in it: as one command, in a terminal, or as an app-server
// that several clients share. Hooks are trusted for that home alone, as its person would.

import { type ChildProcess, spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { hostProgram } from '../../tools/hosts.mjs';
import { until } from '../process/home.ts';
import {
  alive,
  answer,
  type Env,
  type Finished,
  finished,
  root,
  startUp,
  stopRouter,
} from '../process/postbell.ts';
import { codexMailAgent } from './codex-agent.ts';
import {
  type CodexModel,
  type CodexRequest,
  type CodexScript,
  codexModelConfig,
  startCodexModel,
} from './codex-model.ts';
import { dataIn, type Mail, mailOf, recordsIn } from './office.ts';
import { openTerminal, type Terminal } from './terminal.ts';

export function codexBinary(): string {
  const found = hostProgram('codex');
  if (!found) throw new Error('Codex is not installed: run `node tools/hosts.mjs codex`');
  return found;
}

export interface HookState {
  key: string;
  eventName: string;
  trustStatus: 'untrusted' | 'trusted' | 'modified' | 'managed';
  currentHash: string;
}

export interface CodexOffice extends Mail {
  dir: string;
  project: string;
  codexHome: string;
  env: Env;
  model: CodexModel;
  /** Runs one command of Codex to its end. */
  codex(words: string[], more?: Env): Promise<Finished>;
  /** One prompt by `codex exec`; its thread. */
  exec(prompt: string, words?: string[], more?: Env): Promise<Finished & { thread: string }>;
  /** A session in a terminal after a first prompt, from which on the thread is known. */
  open(prompt?: string, words?: string[], more?: Env): Promise<{ terminal: Terminal; thread: string }>;
  /** An app-server that terminals and queues share. */
  serve(more?: Env): Promise<ChildProcess>;
  hooks(): Promise<HookState[]>;
  trust(): Promise<void>;
  /** Who is live in a directory, else in the project. */
  cards(folder?: string): Promise<Card[]>;
  /** The card of a live thread; undefined where there is none. */
  card(thread: string): Promise<Card | undefined>;
  records(): ReturnType<typeof recordsIn>;
  /** Another directory that Codex trusts. */
  directory(name: string): string;
  atEnd(end: () => unknown): void;
  end(): Promise<void>;
}

export interface Card {
  session_id: string;
  principal_id: string;
  host_kind: string;
  project: string;
  generation: number;
  bell: string;
  bell_state: { state: string; reason?: string };
}

export interface CodexOfficeOptions {
  script?: CodexScript;
  /** The plugin is not installed, or its hooks are not trusted. */
  plugin?: 'none' | 'untrusted';
  /** More lines of config.toml, before any table. */
  config?: string;
  /** Where its folders are made. Codex lets a sandboxed shell write in the directory of temporary files. */
  below?: string;
  /** Of the sandbox; without it there is none. */
  sandbox?: 'read-only' | 'workspace-write';
  /** Added to the environment of every process. */
  env?: (dir: string) => Env;
  /** What its owner does before a router runs. */
  before?: (env: Env, project: string) => Promise<unknown>;
}

export async function openCodexOffice(options: CodexOfficeOptions = {}): Promise<CodexOffice> {
  const { script, plugin, config = '', sandbox = 'danger-full-access', below = tmpdir() } = options;
  const dir = realpathSync(mkdtempSync(path.join(below, 'pb-')));
  const [home, codexHome, project] = [
    path.join(dir, 'home'),
    path.join(dir, 'codex'),
    path.join(dir, 'shop'),
  ];
  for (const folder of [home, codexHome, project, path.join(dir, 'tmp')]) mkdirSync(folder);
  const model = await startCodexModel(script ?? codexMailAgent);
  const env: Env = {
    PATH: [path.dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':'),
    HOME: home,
    CODEX_HOME: codexHome,
    // Else Codex warns of its home below the directory of temporary files.
    TMPDIR: path.join(dir, 'tmp'),
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    FIXTURE_API_KEY: 'dummy-key-not-real',
    ...options.env?.(dir),
  };
  const file = path.join(codexHome, 'config.toml');
  const trusted = (folder: string): string =>
    `\n[projects.${JSON.stringify(folder)}]\ntrust_level = "trusted"\n`;
  const safety = `approval_policy = "never"\nsandbox_mode = "${sandbox}"\n`;
  writeFileSync(file, `${safety}${config}${codexModelConfig(model.url)}${trusted(project)}`);
  const ending: (() => unknown)[] = [
    () => rmSync(dir, { recursive: true, force: true }),
    () => model.close(),
  ];
  const codex = (words: string[], more: Env = {}): Promise<Finished> =>
    finished(codexBinary(), words, { ...env, ...more }, project);
  if (plugin !== 'none') {
    expect(await codex(['plugin', 'marketplace', 'add', root])).toMatchObject({ code: 0 });
    expect(await codex(['plugin', 'add', 'postbell@postbell'])).toMatchObject({ code: 0 });
  }
  const hooks = (): Promise<HookState[]> => hooksOf(env, project);
  const trust = async (): Promise<void> => appendFileSync(file, trustOf(await hooks()));
  if (plugin === undefined) await trust();
  await options.before?.(env, project);
  const up = await startUp(env, project);
  // A companion would start the router anew.
  ending.push(
    () => stopRouter(env, project),
    () => endCompanions(env),
    up.end,
  );
  const mail = mailOf(env, project);
  return {
    dir,
    project,
    codexHome,
    env,
    model,
    ...mail,
    ...sessionsOf({ env, project, model, codex, ending }),
    codex,
    hooks,
    trust,
    cards: (folder = project) => cardsIn(env, folder),
    card: async (thread) => (await cardsIn(env, project)).find(({ session_id }) => session_id === thread),
    records: () => recordsIn(env),
    directory: (name) => {
      const folder = path.join(dir, name);
      mkdirSync(folder, { recursive: true });
      appendFileSync(file, trusted(folder));
      return folder;
    },
    atEnd: (end) => void ending.push(end),
    end: async () => {
      const faults: unknown[] = [];
      for (const end of ending.splice(0).reverse())
        await Promise.resolve()
          .then(end)
          .catch((error: unknown) => faults.push(error));
      if (faults.length > 0) throw faults[0];
    },
  };
}

interface Sessions {
  env: Env;
  project: string;
  model: CodexModel;
  codex: CodexOffice['codex'];
  ending: (() => unknown)[];
}

function sessionsOf({
  env,
  project,
  model,
  codex,
  ending,
}: Sessions): Pick<CodexOffice, 'exec' | 'open' | 'serve'> {
  let opened = 0;
  return {
    exec: async (prompt, words = [], more) => {
      const run = await codex(['exec', '--json', '--skip-git-repo-check', ...words, prompt], more);
      const thread = /"thread_id":"([0-9a-f-]{36})"/.exec(run.stdout)?.[1] ?? '';
      return { ...run, thread };
    },
    open: async (prompt = `hello ${++opened}`, words = [], more = {}) => {
      const terminal = await openTerminal({ ...env, ...more }, project, [codexBinary(), ...words]);
      ending.push(terminal.end);
      await terminal.waitForScreen(/Ask Codex to do anything/, 30_000);
      const from = model.requests.length;
      await terminal.type(prompt);
      const asks = (request: CodexRequest): boolean => !request.side && model.text(request).includes(prompt);
      const { thread } = await model.waitFor(asks, 20_000, from);
      return { terminal, thread };
    },
    serve: async (more = {}) => {
      const child = spawn(codexBinary(), ['app-server', '--listen', 'unix://'], {
        cwd: project,
        env: { ...env, ...more },
        stdio: 'ignore',
      });
      ending.push(() => ended(child));
      const socket = path.join(env.CODEX_HOME as string, 'app-server-control/app-server-control.sock');
      await expect.poll(() => existsSync(socket), { timeout: 10_000 }).toBe(true);
      return child;
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exited;
}

/** Those that still wait for their thread to come back. */
async function endCompanions(env: Env): Promise<void> {
  const runtime = path.join(dataIn(env), 'runtime');
  const names = existsSync(runtime) ? readdirSync(runtime).filter((name) => name.endsWith('.json')) : [];
  for (const name of names) {
    const { pid } = JSON.parse(readFileSync(path.join(runtime, name), 'utf8')) as { pid: number };
    if (!alive(pid)) continue;
    process.kill(pid, 'SIGTERM');
    await until('the companion ends', () => !alive(pid), 5_000);
  }
}

async function cardsIn(env: Env, folder: string): Promise<Card[]> {
  const { project } = await answer(env, folder, ['send', 'nobody', '--json'], 'which project is this');
  const found = await answer(env, folder, ['message', 'discover', '--project', String(project), '--detail']);
  return found.cards as Card[];
}

/** The state of every hook that Codex sees in the directory, by its own answer. */
function hooksOf(env: Env, cwd: string): Promise<HookState[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(codexBinary(), ['app-server'], { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
    child.on('error', reject);
    child.on('exit', () => reject(new Error('codex app-server ended')));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { id, result } = JSON.parse(line) as { id?: number; result?: { data: { hooks: HookState[] }[] } };
      if (id === 1) {
        send({ method: 'initialized' });
        send({ id: 2, method: 'hooks/list', params: { cwds: [cwd] } });
      }
      if (id !== 2) return;
      resolve((result?.data ?? []).flatMap(({ hooks }) => hooks));
      child.stdin.end();
    });
    const clientInfo = { name: 'postbell-tests', title: null, version: '0' };
    send({ id: 1, method: 'initialize', params: { clientInfo, capabilities: { experimentalApi: true } } });
  });
}

/** What Codex writes when its person trusts these hooks. */
const trustOf = (hooks: readonly HookState[]): string =>
  hooks
    .map(({ key, currentHash }) => {
      const [handler, content] = currentHash.split('/');
      const ofPlugin = content === undefined ? '' : `trusted_content_hash = ${JSON.stringify(content)}\n`;
      return `\n[hooks.state.${JSON.stringify(key)}]\ntrusted_hash = ${JSON.stringify(handler)}\n${ofPlugin}`;
    })
    .join('');
