// Our server inside an agent that our own runner started: how it is started, what the agent itself is started with, and the
// mark by which the runner learns that the agent has asked that server for its tools.

import path from 'node:path';
import { fileName } from '../crypto/file-name.ts';
import type { Environment } from '../platform/environment.ts';
import type { Places } from '../platform/paths.ts';
import { outsideSessions } from './runner.ts';

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
  const words = ['--session', of.sessionId, '--no-register', '--workspace', of.workspace];
  const { command, args, env } = ownServer(of);
  return { command, words: [...args, ...words], environment: { ...env, ...asSession(of) } };
}

/** In the shape of a host's settings, for a host that says with each call who calls: it rings nobody. */
export function ownServer({ places, environment }: Pick<Injected, 'places' | 'environment'>) {
  // Some agents start servers with hardly any of their own variables.
  const passed = ['POSTBELL_STORAGE_QUOTA_BYTES', 'POSTBELL_KEY', 'POSTBELL_PEERS', 'XDG_CONFIG_HOME'];
  const more = passed.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const env: Record<string, string> = {
    ...Object.fromEntries(more),
    POSTBELL_LISTENER: 'off',
    POSTBELL_DB: places.database,
    POSTBELL_ROUTER_SOCKET: places.routerSocket,
  };
  return { command: process.execPath, args: [path.join(__dirname, 'postbell.cjs'), 'mcp'], env };
}

/** What the agent is started with: what a plugin of ours inside it needs to be this session, and to ring nobody. */
export const agentEnvironment = (of: Injected): Record<string, string> => ({
  ...outsideSessions(of.environment),
  ...asSession(of),
});

const asSession = ({ sessionId, principal }: Injected) => ({
  POSTBELL_SESSION: sessionId,
  POSTBELL_RECIPIENT: principal,
  POSTBELL_LISTENER: 'off',
});
