// Runs the real Claude Code, offline, with a throw-away home: as one command, as a stream-json session, or in a terminal.
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
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
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { claudeBinary } from '../../tools/hosts.mjs';
import { watchFamily } from './family.ts';
import { record } from './record.ts';

/** A whole environment: nothing of the test's own environment is passed on beside it. */
export type Env = { [name: string]: string };

const key = 'dummy-key-not-real';
const endGraceMs = 5000;

let chosen: string | undefined;

/** Which installed version runs from here on; the tested one unless this was called. */
export function useClaude(version: string | undefined): void {
  chosen = version;
}

function binary(): string {
  const found = claudeBinary(chosen);
  if (!found) throw new Error('Claude Code is not installed: run `node tools/hosts.mjs`');
  return found;
}

/** Adds `values` to a JSON file, top-level keys only; makes the file where it is missing. */
function mergeJson(file: string, values: object): void {
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
  writeFileSync(file, JSON.stringify({ ...before, ...values }, null, 2));
}

/** Options of `claudeHome`; `settings` goes into the user's settings.json. */
export interface ClaudeHome {
  dir: string;
  modelUrl: string;
  project: string;
  extraEnv?: Env;
  settings?: object;
}

/**
 * Makes a home under `dir` in which Claude Code asks nothing at start (onboarding, key and trust of `project` are
 * answered), and returns the environment for it. Call again with the same `dir` for one more project.
 */
export function claudeHome({ dir, modelUrl, project, extraEnv = {}, settings = {} }: ClaudeHome): Env {
  const [home, config] = [path.join(dir, 'home'), path.join(dir, 'config')];
  for (const folder of [home, config, project]) mkdirSync(folder, { recursive: true });
  const state = path.join(config, '.claude.json');
  const { projects = {} } = existsSync(state)
    ? (JSON.parse(readFileSync(state, 'utf8')) as { projects?: object })
    : {};
  const trusted = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true };
  mergeJson(state, {
    hasCompletedOnboarding: true,
    lastOnboardingVersion: '9.9.9',
    theme: 'dark',
    customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    projects: { ...projects, [realpathSync(project)]: trusted },
  });
  mergeJson(path.join(config, 'settings.json'), settings);
  return {
    PATH: [path.dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':'),
    HOME: home,
    CLAUDE_CONFIG_DIR: config,
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_AUTOUPDATER: '1',
    ...extraEnv,
  };
}

/** What a finished command left; `code` is null where a signal (or the limit of 60 s) ended it. */
export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs one command of the CLI to its end, with nothing on stdin: `plugin …`, `mcp …`, `-p …`. */
export function runClaude(env: Env, args: string[], cwd: string): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(binary(), args, { cwd, env, timeout: 60_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
    child.stdin?.end();
  });
}

/** Whether the host has written down a prompt of the session: sooner, nobody can resume it. */
export function isResumable(env: Env, session: string): boolean {
  const projects = path.join(env.CLAUDE_CONFIG_DIR as string, 'projects');
  const folders = existsSync(projects) ? readdirSync(projects) : [];
  const transcripts = folders.map((folder) => path.join(projects, folder, `${session}.jsonl`));
  return transcripts.some((file) => existsSync(file) && readFileSync(file, 'utf8').includes('"type":"user"'));
}

/** One line of a stream-json session's output. */
export interface StreamEvent {
  type: string;
  subtype?: string;
  session_id?: string;
  hook_event?: string;
  result?: string;
  [field: string]: unknown;
}

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface StreamSession {
  pid: number;
  /** Resolves, never rejects, once the host is gone and its output is read. */
  exited: Promise<Exit>;
  events: StreamEvent[];
  stderr(): string;
  /** Writes one user message to the session's stdin. */
  say(text: string): void;
  /** The first event at index `from` or later that fits; rejects after `ms` or when the host is gone. */
  waitFor(predicate: (event: StreamEvent) => boolean, ms: number, from?: number): Promise<StreamEvent>;
  /** The `n`-th `result`, counted from 1 over the whole session, wakes included. */
  waitResult(n: number, ms: number): Promise<StreamEvent>;
  /**
   * The newest id seen, `/clear` followed from its SessionStart hook or the next turn on. Before any event it is the
   * id given with `--session-id` (`--resume` without `--fork-session`); it throws where neither is known.
   */
  sessionId(): string;
  /** Closes stdin; the host then ends, but not before its asyncRewake hooks have. */
  closeInput(): void;
  kill(signal: NodeJS.Signals): void;
  /** Pids of the host and of everything it started that still lives, orphans included. */
  living: () => number[];
  /** Ends the host by SIGTERM, then kills what of it still lives after `graceMs` (5 s). Returns the pids killed. */
  end: (graceMs?: number) => Promise<number[]>;
}

/** The value after any of the `flags`. */
function flagValue(args: string[], ...flags: string[]): string | undefined {
  const at = args.findIndex((arg) => flags.includes(arg));
  return at < 0 ? undefined : args[at + 1];
}

/** A fresh session gets an id from us, so that it is known before the first event: without hooks none comes before a prompt. */
function withSessionId(args: string[]): { args: string[]; id: string | undefined } {
  const fixed = flagValue(args, '--session-id');
  const resumed = flagValue(args, '--resume', '-r');
  if (fixed) return { args, id: fixed };
  if (resumed) return { args, id: args.includes('--fork-session') ? undefined : resumed };
  if (args.includes('--continue') || args.includes('-c')) return { args, id: undefined };
  const id = randomUUID();
  return { args: [...args, '--session-id', id], id };
}

function eventOf(line: string): StreamEvent {
  try {
    return JSON.parse(line) as StreamEvent;
  } catch {
    return { type: 'unparsed', line };
  }
}

const streamArgs =
  '-p --input-format stream-json --output-format stream-json --verbose --include-hook-events';

/** Starts a session driven by lines on stdin and stdout, as programs run it. */
export function streamSession(env: Env, cwd: string, more: string[] = []): StreamSession {
  const { args, id } = withSessionId(more);
  const child = spawn(binary(), [...streamArgs.split(' '), ...args], { cwd, env });
  // Failing to start shows in the missing pid; a failed signal or write shows in `exited` and the waits.
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  const { pid } = child;
  if (!pid) throw new Error('Claude Code did not start');
  const family = watchFamily(pid);
  const events = record<StreamEvent>('event');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString('utf8');
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.trim()) events.add(eventOf(line));
  });
  const closed = new Promise((resolve) => child.on('close', resolve));
  const exited = new Promise<Exit>((resolve) => {
    child.on('exit', (code, signal) => {
      // An orphan of the host may hold its output open, so the end of that is not waited for without limit.
      void Promise.race([closed, pause(1000)]).then(() => {
        events.end(() => `the host ended with ${signal ?? code}: ${errors.slice(-500)}`);
        resolve({ code, signal });
      });
    });
  });
  return {
    pid,
    exited,
    events: events.items,
    stderr: () => errors,
    say: (text) =>
      void child.stdin.write(
        `${JSON.stringify({ type: 'user', message: { role: 'user', content: text } })}\n`,
      ),
    waitFor: events.waitFor,
    waitResult(n, ms) {
      let seen = 0;
      return events.waitFor(({ type }) => type === 'result' && ++seen === n, ms);
    },
    sessionId() {
      const newest = events.items.findLast((event) => event.session_id)?.session_id ?? id;
      if (!newest) throw new Error('no event has told the session id yet');
      return newest;
    },
    closeInput: () => void child.stdin.end(),
    kill(signal) {
      family.living();
      child.kill(signal);
    },
    living: family.living,
    async end(graceMs = endGraceMs) {
      family.living();
      child.kill('SIGTERM');
      return family.end(graceMs);
    },
  };
}

export interface TtySession {
  /** Pid of the host itself. */
  pid: number;
  /** The id that the session started with; undefined where only the host knows it (`--continue`, `--fork-session`). */
  startedAs: string | undefined;
  /** Types text, and leaves it there. */
  keys(text: string): Promise<void>;
  /** Types a line and Enter. */
  type(text: string): Promise<void>;
  /** Presses keys by their tmux names (`C-c`, `Escape`, `Enter`). */
  press(...keys: string[]): Promise<void>;
  /** The visible text; it stays readable after the host has ended. */
  screen(): Promise<string>;
  /** The screen once it matches; rejects after `ms`, with the screen in the message. */
  waitForScreen(pattern: RegExp, ms: number): Promise<string>;
  living: () => number[];
  /** Closes the terminal (SIGHUP), then kills what still lives after `graceMs` (5 s). Returns the pids killed. */
  end: (graceMs?: number) => Promise<number[]>;
}

/** Runs commands on a private tmux server. Its socket lies in a folder of its own, since tmux leaves the file behind. */
function privateTmux(env: Env) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tty-'));
  const run = promisify(execFile);
  return {
    // tmux gets the environment too, else its server would carry the test's own.
    tmux: async (...words: string[]) =>
      (
        await run('tmux', ['-L', 'host', '-f', '/dev/null', ...words], {
          env: { ...env, TMUX_TMPDIR: folder },
        })
      ).stdout,
    forget: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Starts an interactive session in a terminal of its own: a private tmux server, 150 by 45. */
export async function ttySession(env: Env, cwd: string, more: string[] = []): Promise<TtySession> {
  const { args, id } = withSessionId(more);
  const host = [
    'env',
    '-i',
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    binary(),
    ...args,
  ];
  const window = ['new-session', '-d', '-s', 'host', '-x', '150', '-y', '45', '-c', cwd, ...host];
  const { tmux, forget } = privateTmux(env);
  let pids: string;
  try {
    await tmux('start-server', ';', 'set-option', '-wg', 'remain-on-exit', 'on', ';', ...window);
    pids = await tmux('display-message', '-p', '-t', 'host', '#{pane_pid} #{pid}');
  } catch (error) {
    await tmux('kill-server').catch(() => {});
    forget();
    throw error;
  }
  const [pid, server] = pids.trim().split(' ').map(Number) as [number, number];
  // The server is a process of its own: the host is its child, but what a dead host leaves is not.
  const [family, all] = [watchFamily(pid), watchFamily(server)];
  const screen = () => tmux('capture-pane', '-p', '-t', 'host');
  const press = async (...keys: string[]) => void (await tmux('send-keys', '-t', 'host', ...keys));
  async function close(graceMs: number): Promise<number[]> {
    all.living();
    await tmux('kill-server');
    const killed = await all.end(graceMs);
    killed.push(...(await family.end(0)));
    forget();
    return killed;
  }
  let ended: Promise<number[]> | undefined;
  return {
    pid,
    startedAs: id,
    async keys(text) {
      await tmux('send-keys', '-t', 'host', '-l', '--', text);
    },
    async type(text) {
      await tmux('send-keys', '-t', 'host', '-l', '--', text);
      // Sent at once, Enter is taken for a part of a paste.
      await pause(300);
      await press('Enter');
    },
    press,
    screen,
    async waitForScreen(pattern, ms) {
      for (const until = Date.now() + ms; ; await pause(100)) {
        const text = await screen();
        if (pattern.test(text)) return text;
        if (Date.now() > until)
          throw new Error(`the screen did not show ${pattern} within ${ms} ms:\n${text}`);
      }
    },
    living: family.living,
    end(graceMs = endGraceMs) {
      ended ??= close(graceMs);
      return ended;
    },
  };
}
