// The actors of the demo: real processes of the product in a throw-away home, all ended by pid.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../../ports/clock.ts';

export interface Stage {
  /** Node and the program. */
  command: readonly [string, string];
  cwd: string;
  /** The automatic project of `cwd`. */
  project: string;
  env: Readonly<Record<string, string>>;
  clock: Clock;
  /** Everything that was started and may still run. */
  cast: Set<ChildProcess>;
  /** The curtain is down: nobody else comes on. */
  over: boolean;
}

export interface Ended {
  code: number | null;
  out: string;
  err: string;
  tookMs: number;
}

const commandWaitMs = 20_000;

function start(stage: Stage, words: readonly string[], more: Readonly<Record<string, string>>): ChildProcess {
  if (stage.over) throw new Error('the demo is over');
  const [node, program] = stage.command;
  const child = spawn(node, [program, ...words], { cwd: stage.cwd, env: { ...stage.env, ...more } });
  stage.cast.add(child);
  child.on('close', () => stage.cast.delete(child));
  child.stdin?.on('error', () => {});
  return child;
}

/** One command to its end. A command that never ends is killed: its code is null. */
export function run(
  stage: Stage,
  words: readonly string[],
  options: { input?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const beganMs = stage.clock.elapsedMs();
  const child = start(stage, words, options.env ?? {});
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
  child.stdin?.end(options.input ?? '');
  return new Promise((resolve, reject) => {
    const cancel = stage.clock.after(commandWaitMs, () => child.kill('SIGKILL'));
    child.on('error', reject);
    child.on('close', (code) => {
      cancel();
      resolve({ code, out, err, tookMs: stage.clock.elapsedMs() - beganMs });
    });
  });
}

/** A process that goes on. */
export function leaveRunning(stage: Stage, words: readonly string[]): ChildProcess {
  return start(stage, words, {});
}

export interface McpSession {
  pid: number;
  /** The structured answer of a tool; throws where it is an error. */
  call(tool: string, input: object): Promise<Record<string, unknown>>;
  /** SIGKILL, and its end. */
  kill(): Promise<void>;
}

/** `postbell mcp` as an agent host starts it, driven over stdio (JSON-RPC 2.0, one message a line). */
export async function openMcp(stage: Stage, env: Readonly<Record<string, string>>): Promise<McpSession> {
  const child = start(stage, ['mcp'], env);
  const waiting = new Map<number, (answer: Record<string, unknown>) => void>();
  let held = '';
  let lastId = 0;
  child.stdout?.on('data', (chunk: Buffer) => {
    const lines = (held + chunk.toString('utf8')).split('\n');
    held = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line) as { id?: number; result?: Record<string, unknown> };
      if (message.id !== undefined) waiting.get(message.id)?.(message.result ?? {});
    }
  });
  const say = (message: object): void => {
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  };
  const ask = (method: string, params: object): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      lastId += 1;
      const cancel = stage.clock.after(commandWaitMs, () => reject(new Error(`${method} was not answered`)));
      waiting.set(lastId, (answer) => {
        cancel();
        resolve(answer);
      });
      say({ id: lastId, method, params });
    });
  await ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'postbell-demo', version: '1' },
  });
  say({ method: 'notifications/initialized' });
  return {
    pid: child.pid as number,
    call: async (name, input) => {
      const { isError, structuredContent } = await ask('tools/call', { name, arguments: input });
      if (isError === true) throw new Error(`${name}: ${JSON.stringify(structuredContent)}`);
      return structuredContent as Record<string, unknown>;
    },
    kill: () => killed(child),
  };
}

/** Ends the process with SIGKILL. */
export function killed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.on('close', () => resolve());
    child.kill('SIGKILL');
  });
}
