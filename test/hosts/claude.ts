// Runs the real Claude Code, offline, with a throw-away home: as one command, as a stream-json session, or in a terminal.
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { hostProgram } from '../../tools/hosts.mjs';
import { watchFamily } from './family.ts';
import { record } from './record.ts';
import { type Env, endGraceMs, openTerminal, type Terminal } from './terminal.ts';

const key = 'dummy-key-not-real';

let chosen: string | undefined;

/** Which installed version runs from here on; the tested one unless this was called. */
export function useClaude(version: string | undefined): void {
  chosen = version;
}

function binary(): string {
  const found = hostProgram('claude-code', chosen);
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

/** The id that the session started with; undefined where only the host knows it (`--continue`, `--fork-session`). */
export interface TtySession extends Terminal {
  startedAs: string | undefined;
}

/** Starts an interactive session in a terminal of its own. */
export async function ttySession(env: Env, cwd: string, more: string[] = []): Promise<TtySession> {
  const { args, id } = withSessionId(more);
  return { ...(await openTerminal(env, cwd, [binary(), ...args])), startedAs: id };
}
