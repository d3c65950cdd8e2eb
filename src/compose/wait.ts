// `postbell wait`: the listener that Claude Code starts at SessionStart, with each prompt and at each Stop.

import { parseArgs } from 'node:util';
import { listenerBell } from '../hosts/claude-code/bell.ts';
import type { Ringing } from '../mailbox/ring.ts';
import { systemClock } from '../platform/clock.ts';
import { isCharacterDevice, readStdin, writeAll } from '../platform/descriptors.ts';
import { type Environment, processEnvironment } from '../platform/environment.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { isSessionId } from '../protocol/scope.ts';
import { type HookPayload, nothing, readPayload } from '../surfaces/hooks/input.ts';
import { waitForMail } from '../surfaces/hooks/wait.ts';
import { whileBusy } from '../surfaces/hooks/while-busy.ts';
import { endingSignals } from './ending.ts';
import { orFail } from './failure.ts';
import {
  hostIsGone,
  hostProcess,
  isUnattended,
  listenerRuns,
  pinnedSession,
  stillRuns,
  underCodex,
} from './identity.ts';
import { projectOfHost } from './project.ts';
import { principalOf } from './recipient.ts';
import { openGround } from './store.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    // Not by its exit code alone: a host may hold stdin open.
    process.exit(await run(rest));
  });
}

async function run(words: readonly string[]): Promise<0 | 2> {
  const flags = readFlags(words);
  // Nothing rings there.
  if (process.platform === 'win32') return 0;
  const environment = processEnvironment;
  const ended = endedBySignal();
  // Before the input is read: a host that dies meanwhile leaves its orphans to another parent.
  const host = hostProcess(environment);
  const watched = host ?? hostProcess(environment, process.ppid);
  const payload: HookPayload = isCharacterDevice(0)
    ? nothing
    : await readPayload(readStdin, { clock: systemClock, ended });
  if (payload.turn_id !== undefined || underCodex(environment)) return 0;
  if (hostIsGone(environment) || !stillRuns(watched)) return 0;
  if (payload.subagent || !listenerRuns(environment, host)) return 0;
  const ground = await whileBusy({ clock: systemClock, ended }, () =>
    openGround({ lockWaitMs: limits.hookStoreWaitMs }),
  );
  if (ground === undefined) return 0;
  const session = flags.session ?? pinnedSession(environment) ?? payload.session_id ?? 'main';
  try {
    return await waitForMail({
      desk: ground,
      locks: ground.locks,
      session,
      bell: listenerBell(ground),
      ringing: ringingOnce(environment, session),
      host: host && `${host.pid}-${host.start_time}`,
      hostAlive: () => stillRuns(watched),
      unattended: isUnattended(environment),
      renewAfterMs: flags.renewSeconds * 1_000,
      stoppedAtMs: payload.event === 'Stop' ? systemClock.nowMs() - systemClock.elapsedMs() : undefined,
      print: (text) => writeAll(2, text),
      ended,
    });
  } finally {
    ground.store.close();
  }
}

/** Asked for once, and only where no server rings. Where the project cannot be known, nobody is rung by guess. */
function ringingOnce(environment: Environment, session: string): () => Promise<Ringing | undefined> {
  const find = async (): Promise<Ringing | undefined> => {
    const project = await projectOfHost(environment);
    const principal = principalOf(environment, 'claude', session);
    return project === undefined ? undefined : { caller: { session, principal }, project };
  };
  let found: Promise<Ringing | undefined> | undefined;
  return () => (found ??= find());
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
  const { session: named, 'renew-after-secs': given = String(limits.listenerRenewSecondsMax) } = values;
  const renewSeconds = /^\d+$/.test(given) ? Number(given) : 0;
  if (renewSeconds < 1 || renewSeconds > limits.listenerRenewSecondsMax)
    throw usage(`--renew-after-secs takes 1 to ${limits.listenerRenewSecondsMax}`);
  const session = named === '' ? undefined : named;
  if (session !== undefined && !isSessionId(session)) throw usage('--session is malformed');
  return { session, renewSeconds };
}

function endedBySignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of endingSignals) process.on(signal, () => controller.abort());
  return controller.signal;
}
