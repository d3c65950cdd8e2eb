// Codex in a terminal of its own: a private tmux server, ended with the test.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { until } from '../../process/home.ts';
import { alive } from '../../process/postbell.ts';
import type { CodexHome } from './server.ts';

const run = promisify(execFile);

export interface Terminal {
  type(text: string): Promise<void>;
  press(key: string): Promise<void>;
  screen(): Promise<string>;
}

/** Once its prompt is shown. */
export async function openTerminal(codex: CodexHome): Promise<Terminal> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tty-'));
  const tmux = async (...words: string[]): Promise<string> => {
    const env = { ...codex.env, TMUX_TMPDIR: folder };
    return (await run('tmux', ['-L', 'codex', '-f', '/dev/null', ...words], { env })).stdout;
  };
  codex.atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const variables = Object.entries(codex.env).map(([name, value]) => `${name}=${value}`);
  const host = ['env', '-i', ...variables, codex.program];
  await tmux('new-session', '-d', '-s', 'codex', '-x', '150', '-y', '45', '-c', codex.work, ...host);
  const pid = Number(await tmux('display-message', '-p', '-t', 'codex', '#{pane_pid}'));
  codex.atEnd(async () => {
    await tmux('kill-server').catch(() => {});
    await until('the terminal has ended', () => !alive(pid)).catch(() => process.kill(pid, 'SIGKILL'));
  });
  const screen = () => tmux('capture-pane', '-p', '-t', 'codex');
  const press = async (key: string) => void (await tmux('send-keys', '-t', 'codex', key));
  await until(
    'the prompt is shown',
    async () => (await screen()).includes('Ask Codex to do anything'),
    30_000,
  );
  return {
    screen,
    press,
    type: async (text) => {
      await tmux('send-keys', '-t', 'codex', '-l', '--', text);
      // Sent at once, Enter is taken for a part of a paste.
      await pause(500);
      await press('Enter');
    },
  };
}
