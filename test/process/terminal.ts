// A terminal that a test types into and reads: tmux on a socket of its own.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Home } from './home.ts';

export interface TestTerminal {
  type(text: string): void;
  press(key: string): void;
  screen(): string;
  end(): void;
}

export function openTerminal(home: Home, columns = 120, rows = 20): TestTerminal {
  const sockets = mkdtempSync(path.join(tmpdir(), 'tm-'));
  const tmux = (...words: string[]): string =>
    execFileSync('tmux', ['-S', path.join(sockets, 's'), '-f', '/dev/null', ...words], {
      encoding: 'utf8',
      env: { ...home.env, LANG: 'C.UTF-8' },
    });
  tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), '-c', home.project, 'sh');
  let running = true;
  return {
    type: (text) => {
      if (text !== '') tmux('send-keys', '-l', text);
      tmux('send-keys', 'Enter');
    },
    press: (key) => tmux('send-keys', key),
    screen: () => tmux('capture-pane', '-p'),
    end: () => {
      if (!running) return;
      running = false;
      tmux('kill-server');
      rmSync(sockets, { recursive: true });
    },
  };
}
