// `postbell wait`: the listener that Claude Code starts at SessionStart and at each Stop.

import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Environment, processEnvironment, setting } from '../platform/environment.ts';
import { commandLine, isAlive, parentOf } from '../platform/processes.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { isSessionId } from '../protocol/scope.ts';
import { readPayload } from '../surfaces/hooks/input.ts';
import { waitForMail } from '../surfaces/hooks/wait.ts';
import { orFail } from './failure.ts';
import { hostProcess, pinnedSession, stillRuns } from './identity.ts';
import { openGround } from './store.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    process.exitCode = await run(rest);
  });
}

async function run(words: readonly string[]): Promise<0 | 2> {
  const flags = readFlags(words);
  const environment = processEnvironment;
  const payload = process.stdin.isTTY ? { subagent: false } : await readPayload(process.stdin);
  const host = hostProcess(hostPid(environment));
  const unattended = isUnattended(environment);
  if (payload.subagent || isDisabled(environment) || (unattended && !readsStream(host?.pid))) return 0;
  const ended = endedBySignal();
  const ground = await openGround();
  try {
    return await waitForMail({
      desk: ground,
      take: (name) => ground.locks.tryTake(name),
      session: flags.session ?? pinnedSession(environment) ?? payload.session_id ?? 'main',
      host: host && `${host.pid}-${host.start_time}`,
      hostAlive: () => stillRuns(host),
      unattended,
      renewAfterMs: flags.renewSeconds * 1_000,
      print: writeAll,
      ended,
    });
  } finally {
    ground.store.close();
  }
}

function readFlags(words: readonly string[]): { session: string | undefined; renewSeconds: number } {
  const usage = (text: string): Fault => new Fault('usage', text);
  let values: { session?: string; 'renew-after-secs'?: string };
  try {
    ({ values } = parseArgs({
      args: [...words],
      options: { session: { type: 'string' }, 'renew-after-secs': { type: 'string' } },
    }));
  } catch {
    throw usage('wait takes --session ID and --renew-after-secs N');
  }
  const { session, 'renew-after-secs': given = String(limits.listenerRenewSecondsMax) } = values;
  const renewSeconds = /^\d+$/.test(given) ? Number(given) : 0;
  if (renewSeconds < 1 || renewSeconds > limits.listenerRenewSecondsMax)
    throw usage(`--renew-after-secs takes 1 to ${limits.listenerRenewSecondsMax}`);
  if (session !== undefined && !isSessionId(session)) throw usage('--session is malformed');
  return { session: session === '' ? undefined : session, renewSeconds };
}

/** The host itself: named by it, else the nearest ancestor called claude. */
function hostPid(environment: Environment): number | undefined {
  const named = Number(setting(environment, 'CLAUDE_PID'));
  if (Number.isInteger(named) && isAlive(named)) return named;
  let pid = parentOf(process.pid);
  for (let level = 0; pid !== undefined && level < 6; level += 1) {
    if (/(^|\/)claude(\.exe)?$/.test(commandLine(pid)?.[0] ?? '')) return pid;
    pid = parentOf(pid);
  }
  return undefined;
}

function isDisabled(environment: Environment): boolean {
  const channels = environment.POSTBELL_CHANNELS?.toLowerCase();
  return channels === '1' || channels === 'true' || environment.POSTBELL_LISTENER === 'off';
}

function isUnattended(environment: Environment): boolean {
  return environment.CLAUDE_CODE_SESSION_ATTENDED === '0' || environment.CLAUDE_CODE_ENTRYPOINT === 'sdk-cli';
}

/** A host that takes one prompt and ends would run the listener synchronously and never end. */
function readsStream(pid: number | undefined): boolean {
  const words = pid === undefined ? undefined : commandLine(pid);
  return words !== undefined && /(^| )--input-format[= ]stream-json( |$)/.test(words.join(' '));
}

function endedBySignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => controller.abort());
  return controller.signal;
}

/** Every byte on stderr before it returns; throws where nobody reads. */
function writeAll(text: string): void {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}
