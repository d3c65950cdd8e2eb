// Our server inside an agent that our own runner started: how it is started, what the agent itself is started with, and the
// mark by which the runner learns that the agent has asked that server for its tools.

import path from 'node:path';
import { fileName } from '../crypto/file-name.ts';
import type { Environment } from '../platform/environment.ts';
import type { Places } from '../platform/paths.ts';

/** Whose process it is. */
export interface Injected {
  places: Places;
  environment: Environment;
  sessionId: string;
  principal: string;
  workspace: string;
}

/** In `runtime/`, for as long as the runner waits for it. */
export const toolsMark = ({ runtime }: Pick<Places, 'runtime'>, sessionId: string): string =>
  path.join(runtime, `tools-${fileName(sessionId)}`);

/** This very program, on this very store, as this session. */
export function injectedServer(of: Injected) {
  const { places, environment, sessionId, workspace } = of;
  const words = ['mcp', '--session', sessionId, '--no-register', '--workspace', workspace];
  // Some agents start servers with hardly any of their own variables.
  const passed = ['POSTBELL_STORAGE_QUOTA_BYTES', 'POSTBELL_KEY', 'POSTBELL_PEERS', 'XDG_CONFIG_HOME'];
  const more = passed.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    command: process.execPath,
    words: [path.join(__dirname, 'postbell.cjs'), ...words],
    environment: {
      ...Object.fromEntries(more),
      ...asSession(of),
      POSTBELL_DB: places.database,
      POSTBELL_ROUTER_SOCKET: places.routerSocket,
    },
  };
}

/** Another host's session, where this runner was started inside one: the agent is no part of it. */
const others =
  /^(?:CLAUDECODE|CLAUDE_PID|CLAUDE_PROJECT_DIR|CLAUDE_CODE_(?:SESSION_ID|ENTRYPOINT|SESSION_ATTENDED|MESSAGING_\w+)|CODEX_THREAD_ID|POSTBELL_CHANNELS)$/;

/** What the agent is started with: what a plugin of ours inside it needs to be this session, and to ring nobody. */
export function agentEnvironment(of: Injected): Record<string, string> {
  const kept = Object.entries(of.environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !others.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...asSession(of) };
}

const asSession = ({ sessionId, principal }: Injected) => ({
  POSTBELL_SESSION: sessionId,
  POSTBELL_RECIPIENT: principal,
  POSTBELL_LISTENER: 'off',
});
