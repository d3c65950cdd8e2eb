// The companion of one Codex thread: a detached process of its own, since Codex reaps what its hooks start. It holds the thread's
// registration and rings it by `codex queue`, from the thread's first turn until 45 s after its end, or until its Codex is gone.

import { equalSecrets } from '../crypto/hash.ts';
import { queueBell } from '../hosts/codex/bell.ts';
import { queueNotice } from '../hosts/codex/queue.ts';
import { inodeOf, listenPrivately } from '../platform/control.ts';
import { readStdin } from '../platform/descriptors.ts';
import { processEnvironment } from '../platform/environment.ts';
import { startTime } from '../platform/processes.ts';
import type { Lock } from '../ports/lock.ts';
import { untilBeat } from '../protocol/beat.ts';
import {
  type CompanionAnswer,
  type CompanionRecord,
  type CompanionTask,
  type CompanionVerb,
  readCompanionRequest,
  readCompanionTask,
} from '../protocol/companion.ts';
import { describeError, Fault } from '../protocol/errors.ts';
import { hex } from '../protocol/id.ts';
import { limits } from '../protocol/limits.ts';
import { sessionScopedPrincipal } from '../protocol/scope.ts';
import { replacedLine } from '../protocol/session.ts';
import { recordHostPlace } from '../sessions/release.ts';
import { codexEnvironment } from './codex-place.ts';
import { answers, Companions } from './companions.ts';
import { endOnSignal } from './ending.ts';
import { stillRuns } from './identity.ts';
import { type Local, openLocal } from './local.ts';
import { projectOf } from './project.ts';
import { reachable } from './reachable.ts';
import { isUntrusted, recipientOf } from './recipient.ts';

const startAttemptsMax = 6;
/** A Codex that was killed is noticed within it, also where no server of its thread touched anything at its end. */
const hostLookMs = 5_000;

export async function main(): Promise<void> {
  // Whoever started it goes on, and may be gone when it is answered.
  process.stdout.on('error', () => {});
  try {
    await run(await readTask());
  } catch (error) {
    answer({ failed: reasonOf(error) });
    process.exitCode = 1;
  }
}

const answer = (text: CompanionAnswer): void => void process.stdout.write(`${JSON.stringify(text)}\n`);

const reasonOf = (error: unknown): string => {
  const { code, message } = describeError(error);
  return `${code}: ${message}`;
};

async function readTask(): Promise<CompanionTask> {
  const pieces: Buffer[] = [];
  for await (const piece of readStdin(new AbortController().signal)) {
    pieces.push(piece);
    if (piece.includes('\n')) break;
  }
  const task = readCompanionTask(Buffer.concat(pieces).toString('utf8'));
  if (task === undefined)
    throw new Fault('usage', 'companion is started by a hook of Codex, with its task on stdin');
  return task;
}

async function run(task: CompanionTask): Promise<void> {
  const local = await openLocal();
  const companions = new Companions(local.places, task.thread);
  const lock = local.locks.tryTake(`companion-${task.thread.toLowerCase()}`);
  try {
    if (lock === undefined) throw new Fault('companion_busy', 'another start of this session is under way');
    await accompany({ local, task, companions, lock });
  } catch (error) {
    companions.log(`session registration failed: ${reasonOf(error)}`);
    answer({ failed: reasonOf(error) });
    // Whatever of it stands already would hold up the next start.
    lock?.release();
    process.exit(1);
  }
}

interface Company {
  local: Local;
  task: CompanionTask;
  companions: Companions;
  /** Of this start. */
  lock: Lock;
}

async function accompany({ local, task, companions, lock }: Company): Promise<void> {
  const { thread, workspace } = task;
  const session = {
    id: thread,
    host: 'codex',
    process: task.host,
    generated: false,
    principal: principalOf(local, task),
  } as const;
  const project = await projectOf(workspace);
  await recordHostPlace(local, thread, { program: task.program, home: task.home ?? null });
  const former = await companions.makeRoom(() => local.wake.touch());
  const ending = endingOf(local, companions, task);
  const startedAtMs = local.clock.elapsedMs();
  const desk = await openControl({ local, task, companions, former, obey: (request) => obey(request) });
  ending.unless(desk.isThere);
  const obey = async (request: CompanionVerb): Promise<boolean> => {
    if (request.verb === 'end') return ending.sessionEnded(request.workspace);
    if (request.verb === 'summary') await reach.summarize(request.text);
    else local.clock.after(0, ending.now);
    return true;
  };
  let begun = false;
  let logged = '';
  const reach = reachable(local, {
    session,
    project,
    bell: bellOf(local, task),
    turnAtMs: () => startedAtMs,
    onReplaced: () => {
      companions.log(replacedLine);
      ending.now();
    },
    onFault: (error) => {
      const why = reasonOf(error);
      // It is tried again and again.
      if (why !== logged) companions.log(why);
      logged = why;
      // A person has to end that router.
      if (!begun && error instanceof Fault && error.code === 'router_outdated') answer({ failed: why });
    },
    start: {
      startAttemptsMax,
      onRegistered: () => {
        logged = '';
        if (begun) return;
        begun = true;
        lock.release();
        answer({ registered: true });
        desk.registered();
      },
      onGaveUp: (why) => {
        companions.log(`session registration failed: ${reasonOf(why)}`);
        answer({ failed: reasonOf(why) });
        process.exitCode = 1;
        ending.now();
      },
    },
  });
  ending.by(async () => {
    await reach.close();
    desk.close();
    if (!begun) lock.release();
    local.close();
  });
}

/** A file that cannot be trusted is no reason to be somebody else: then nobody is registered. */
function principalOf({ environment }: Local, { thread, workspace, shared }: CompanionTask): string {
  const recipient = recipientOf(environment, 'codex', { workspace, shared });
  if (isUntrusted(recipient)) throw new Fault('insecure_path', recipient.ignored ?? '');
  return recipient.named ?? sessionScopedPrincipal('codex', thread);
}

interface Control extends Omit<Company, 'lock'> {
  /** Sockets that stay. */
  former: readonly string[];
  /** @returns whether it was done */
  obey(request: CompanionVerb): Promise<boolean>;
}

/** Where later hooks, companions and the thread's server reach this one, and the record that says so. */
async function openControl({ local, task, companions, former, obey }: Control) {
  const token = hex(local.random.bytes(32));
  const socket = companions.socketFile(hex(local.random.bytes(4)));
  const record = (state: CompanionRecord['state'], inode?: string): void =>
    companions.write({
      version: 1,
      pid: process.pid,
      start_time: startTime(process.pid) ?? '',
      thread: task.thread,
      workspace: task.workspace,
      token,
      socket,
      state,
      ...(inode !== undefined && { inode }),
      ...(former.length > 0 && { former }),
    });
  // Before the socket: killed between the two it would leave one that nothing accounts for.
  record('starting');
  const control = await listenPrivately(socket, async (line) => {
    const request = readCompanionRequest(line);
    if (request === undefined || !equalSecrets(request.token, token)) return undefined;
    return (await obey(request)) ? answers.heard : answers.declined;
  });
  record('starting', control.inode);
  return {
    /** Whether it can still be reached: its socket is where the record says. */
    isThere: () => inodeOf(socket) === control.inode,
    registered: () => {
      try {
        record('registered', control.inode);
      } catch (error) {
        companions.log(`its record cannot be written: ${reasonOf(error)}`);
      }
    },
    close: () => {
      control.close();
      companions.forget(token);
    },
  };
}

/** None where the thread's queue cannot be used: it is reminded by its hooks. */
function bellOf({ clock }: Local, { thread, program, deaf, home }: CompanionTask) {
  if (deaf !== undefined) return undefined;
  const codex = { file: program, environment: codexEnvironment(processEnvironment, home) };
  return queueBell({
    thread,
    queue: (notice, ended) => queueNotice(clock, codex, { thread, notice, ended }),
  });
}

/**
 * When it ends: told so, replaced, by a signal, or with its Codex, which need not have told anybody. One whose socket somebody took
 * away ends, too: nobody could tell it anything, nor take its place.
 */
function endingOf({ clock, wake }: Local, companions: Companions, { workspace, host }: CompanionTask) {
  let close = async (): Promise<void> => {};
  let isThere = (): boolean => true;
  let told = false;
  let cancelLook = (): void => {};
  let cancelWindow = (): void => {};
  const end = endOnSignal(async () => {
    cancelLook();
    cancelWindow();
    unwatch();
    await close();
  });
  const look = (): void => {
    cancelLook();
    const isAlone = !told && host !== undefined && !stillRuns(host);
    if (isThere() && !isAlone) {
      cancelLook = clock.after(untilBeat(clock.elapsedMs(), hostLookMs), look);
      return;
    }
    companions.log(isAlone ? 'its Codex ended without a SessionEnd' : 'its socket was taken away; it ends');
    end();
  };
  const unwatch = wake.watch(look);
  cancelLook = clock.after(untilBeat(clock.elapsedMs(), hostLookMs), look);
  return {
    now: end,
    unless: (reachable: () => boolean): void => {
      isThere = reachable;
    },
    by: (work: () => Promise<void>): void => {
      close = work;
    },
    /** @returns whether it was the end of this companion's session, and not of a directory that the thread has left */
    sessionEnded: (where: string): boolean => {
      if (where !== workspace) return false;
      if (!told) cancelWindow = clock.after(limits.codexQueueWindowMs, end);
      told = true;
      return true;
    },
  };
}
