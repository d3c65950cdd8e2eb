// Claude Code as far as a channel server knows it: starts a server over pipes, speaks lines of JSON, and keeps what it is
// pushed.

import type { Home, Started } from './home.ts';
import { until } from './home.ts';
import type { Env } from './postbell.ts';

interface Line {
  id?: number;
  method?: string;
  result?: Record<string, unknown>;
  error?: { code: number };
  params?: Record<string, unknown>;
}

export interface Pushed {
  content: string;
  meta: Record<string, string>;
}

export interface ChannelHost extends Started {
  say(message: object): void;
  /** The answer to a request. */
  ask(method: string, params?: object): Promise<Line>;
  /** Asks for the version, and is then initialized. */
  begin(): Promise<Record<string, unknown>>;
  pushed(): Pushed[];
}

export const clientInfo = { name: 'claude-code', version: '2.1.332' };

/** Starts `postbell` with these words in the home's project, as its host does. */
export function channelHost(home: Home, words: string[], more: Env = {}): ChannelHost {
  const started = home.start(words, { CLAUDE_PROJECT_DIR: home.project, ...more });
  const lines = (): Line[] =>
    started
      .stdout()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  const say = (message: object): void =>
    void started.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let asked = 0;
  const ask = async (method: string, params: object = {}): Promise<Line> => {
    asked += 1;
    const id = asked;
    say({ id, method, params });
    await until(`${method} is answered`, () => lines().some((line) => line.id === id));
    return lines().find((line) => line.id === id) as Line;
  };
  return {
    ...started,
    say,
    ask,
    begin: async () => {
      const { result } = await ask('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo,
      });
      say({ method: 'notifications/initialized' });
      return result as Record<string, unknown>;
    },
    pushed: () =>
      lines()
        .filter(({ method }) => method === 'notifications/claude/channel')
        .map(({ params }) => params as unknown as Pushed),
  };
}
