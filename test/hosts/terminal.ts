// A host in a terminal of its own: a private tmux server, 150 by 45, whose screen can be read and whose keys can be pressed.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { watchFamily } from './family.ts';

/** A whole environment: nothing of the test's own environment is passed on beside it. */
export type Env = { [name: string]: string };

export const endGraceMs = 5000;

export interface Terminal {
  /** Pid of the host itself. */
  pid: number;
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

/** Starts the command in it. */
export async function openTerminal(env: Env, cwd: string, command: readonly string[]): Promise<Terminal> {
  const host = ['env', '-i', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command];
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
