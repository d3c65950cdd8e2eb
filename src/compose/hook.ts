// `postbell hook EVENT --host NAME`: short-lived, started by a host, which goes on whatever happens: exit 0, and one record of
// what became of it. Words of a newer manifest say one line besides; those of a person who mistypes are exit 1.

import { existsSync } from 'node:fs';
import type { Addressee } from '../mailbox/remind.ts';
import { ancestors } from '../platform/ancestry.ts';
import { systemClock } from '../platform/clock.ts';
import { readStdin, writeAll } from '../platform/descriptors.ts';
import { processEnvironment, setting } from '../platform/environment.ts';
import { ensureDirectory } from '../platform/files.ts';
import { appendOutcome } from '../platform/hook-log.ts';
import { hostConfigFile, placesOf } from '../platform/paths.ts';
import { markPrompt } from '../platform/prompt-marks.ts';
import { systemRandom } from '../platform/random.ts';
import { say } from '../platform/stderr.ts';
import { fileWake } from '../platform/wake.ts';
import { channelFlagWarning } from '../protocol/channel-flag.ts';
import { Fault } from '../protocol/errors.ts';
import type { HookOutcome } from '../protocol/hook-outcome.ts';
import { limits } from '../protocol/limits.ts';
import { sessionScopedPrincipal } from '../protocol/scope.ts';
import type { HostKind } from '../protocol/session.ts';
import { openStoreReadOnly } from '../store/open-read-only.ts';
import { codexSession } from '../surfaces/hooks/codex-session.ts';
import { type HookPayload, readPayload } from '../surfaces/hooks/input.ts';
import { codeOf, faultOf, type Said } from '../surfaces/hooks/outcome.ts';
import { prompt } from '../surfaces/hooks/prompt.ts';
import type { StoreOrFault } from '../surfaces/hooks/remind.ts';
import { sessionStart } from '../surfaces/hooks/session-start.ts';
import { stop } from '../surfaces/hooks/stop-gate.ts';
import { codexHost } from './codex-host.ts';
import { note, orFail } from './failure.ts';
import { runGate } from './gate.ts';
import { hostProcess } from './identity.ts';
import { projectOfHost } from './project.ts';
import { recipientOf } from './recipient.ts';
import { openGround } from './store.ts';

const events = ['session-start', 'prompt', 'stop-gate', 'codex-session'] as const;
type Event = (typeof events)[number];
/** Hosts that have a manifest of ours. */
const hooked = ['claude', 'codex'] as const;

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    const { event, host } = readWords(rest);
    if (event === undefined) {
      say('postbell: this version knows no such hook\n');
      return leaveRecord('unknown', host, Promise.resolve({ outcome: 'skipped', reason: 'unknown words' }));
    }
    await leaveRecord(event, host, run(event, host));
    // A host may hold stdin open, and is waited for no longer.
    process.exit(0);
  });
}

/**
 * A host that the manifest does not name is no evidence for any; one that it names has a manifest, which may be newer than
 * this program: then no event. Read by hand: Node's parser takes a hook 1 ms.
 */
function readWords([first, ...rest]: readonly string[]): {
  event: Event | undefined;
  host: HostKind | undefined;
} {
  const event = events.find((one) => one === first);
  const [flag, host, ...surplus] = rest;
  const hasManifest = flag === '--host' && host !== undefined;
  if (!hasManifest && (event === undefined || flag !== undefined))
    throw new Fault('usage', `hook takes ${events.join(', ')} and --host claude or codex`);
  const known = hooked.find((one) => one === host);
  return { event: surplus.length > 0 ? undefined : event, host: known };
}

async function leaveRecord(
  hook: Event | 'unknown',
  host: HostKind | undefined,
  work: Promise<HookOutcome>,
): Promise<void> {
  const outcome = await work.catch((error: unknown) => {
    note(error);
    return faultOf('hook', error);
  });
  try {
    const { directory, hookOutcomes } = placesOf(processEnvironment);
    ensureDirectory(directory);
    const time = new Date(systemClock.nowMs()).toISOString();
    appendOutcome(hookOutcomes, { hook, time, host: host ?? null, ...outcome });
  } catch (error) {
    // Said already where the hook itself failed of it.
    if (!outcome.reason.endsWith(codeOf(error))) note(error);
  }
}

async function run(event: Event, host: HostKind | undefined): Promise<HookOutcome> {
  const clock = systemClock;
  // Git runs while the input is read and the store opens.
  const project = event === 'session-start' ? projectOfHost(processEnvironment, host) : undefined;
  const payload = await readPayload(readStdin, { clock });
  if (payload.subagent) return { outcome: 'skipped', reason: 'sub-agent' };
  const who = whoOf(payload, host);
  if (event === 'prompt') notePerson(payload, who.addressee.doubtful);
  const said = await speak(event, { payload, host, who, project });
  if (said.stderr !== '') say(said.stderr);
  if (said.stdout !== '') writeAll(1, said.stdout);
  const problem = payload.problem ?? (who.addressee.doubtful ? 'session ids differ' : undefined);
  if (problem === undefined) return said.outcome;
  const { outcome, reason } = said.outcome;
  return {
    outcome: payload.problem === undefined ? outcome : 'error',
    reason: `${payload.problem === undefined ? '' : 'input '}${problem}; ${reason}`,
  };
}

/** What is said after this in the session was asked for by a person. Without the mark, only what a message answers counts. */
function notePerson({ human, session_id }: HookPayload, doubtful = false): void {
  if (human !== true || session_id === undefined || doubtful) return;
  try {
    const places = placesOf(processEnvironment);
    ensureDirectory(places.directory);
    ensureDirectory(places.runtime);
    markPrompt(places, session_id, systemClock.nowMs());
  } catch {
    // A hook changes no turn for want of a mark.
  }
}

interface Spoken {
  payload: HookPayload;
  host: HostKind | undefined;
  who: ReturnType<typeof whoOf>;
  /** Of a session's start. */
  project: Promise<string | undefined> | undefined;
}

async function speak(event: Event, spoken: Spoken): Promise<Said> {
  const { payload, host, who } = spoken;
  if (event === 'session-start') return startSession(spoken);
  if (event === 'codex-session') {
    const { codexSituation, companionOf } = await import('./companion-start.ts');
    return codexSession(codexSituation(payload), companionOf(payload));
  }
  return withStore((store) =>
    event === 'prompt'
      ? prompt(store, systemClock, who)
      : stop({ store, host, payload, reminded: who }, (open) => runGate(open, payload, who.addressee)),
  );
}

/** By the payload, the environment and the owner's word. The environment may name another session: then neither counts. */
function whoOf({ session_id, cwd }: HookPayload, host: HostKind | undefined) {
  const shared = host === 'codex' && codexHost()?.isShared === true;
  const { named, declared, ignored } = recipientOf(processEnvironment, host, { workspace: cwd, shared });
  const inEnvironment = host === 'claude' ? setting(processEnvironment, 'CLAUDE_CODE_SESSION_ID') : undefined;
  const doubtful = session_id !== undefined && inEnvironment !== undefined && inEnvironment !== session_id;
  const own =
    host === undefined || session_id === undefined ? undefined : sessionScopedPrincipal(host, session_id);
  const recipient = named ?? (doubtful ? undefined : own);
  const addressee: Addressee = {
    ...(recipient !== undefined && { recipient }),
    ...(session_id !== undefined && { session: session_id }),
    ...(doubtful && { doubtful }),
    ...(host === 'codex' && { withoutPushed: true }),
  };
  return { addressee, declared, ...(ignored !== undefined && { ignored }) };
}

async function startSession({ payload, host, who, project }: Spoken): Promise<Said> {
  const ground = await openGround({ lockWaitMs: limits.hookStoreWaitMs }).catch((fault: unknown) => ({
    fault,
  }));
  const store = 'fault' in ground ? ground : ground.store;
  const warning = host === 'claude' ? channelWarning() : undefined;
  const wake = fileWake(placesOf(processEnvironment).wakeFile);
  try {
    const { source } = payload;
    const session = who.addressee.doubtful ? undefined : payload.session_id;
    const unknown = process.platform === 'win32' ? ('windows' as const) : ('unknown' as const);
    // Codex gives a thread one id for life.
    const launcher =
      host === 'codex' ? ('unlinked' as const) : (hostProcess(processEnvironment, process.ppid) ?? unknown);
    const banner = host !== 'codex';
    const start = { ...who, session, source, host: launcher, project, warning: await warning, banner };
    return await sessionStart({ store, clock: systemClock, wake }, start);
  } finally {
    if ('close' in store) store.close();
  }
}

/** Only whoever set up a channel may have meant to open one. */
async function channelWarning(): Promise<string | undefined> {
  const file = hostConfigFile(placesOf(processEnvironment), 'claude');
  if (!existsSync(file)) return undefined;
  return channelFlagWarning(await ancestors(process.ppid));
}

/** One bounded wait for the store, which is read here; what the gate writes goes by a connection of its own. */
async function withStore(work: (store: StoreOrFault) => Said | Promise<Said>): Promise<Said> {
  let store: StoreOrFault;
  const { directory, database } = placesOf(processEnvironment);
  try {
    ensureDirectory(directory);
    store = await openStoreReadOnly({
      path: database,
      clock: systemClock,
      random: systemRandom,
      lockWaitMs: limits.hookStoreWaitMs,
    });
  } catch (fault) {
    store = { fault };
  }
  try {
    return await work(store);
  } finally {
    if (store !== undefined && 'close' in store) store.close();
  }
}
