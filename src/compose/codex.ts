// `postbell host codex`: an app-server of our own with one thread of its own, which rings by beginning a turn. It registers
// only once the thread is ready, and never touches any other session. A person at the terminal may allow what Codex asks.

import { existsSync } from 'node:fs';
import path from 'node:path';
import { type AppServer, endedWords, idOf, type Reply } from '../hosts/codex/app-server.ts';
import { type AskPerson, answerRequest } from '../hosts/codex/approvals.ts';
import { managedBell, ThreadTurn } from '../hosts/codex/managed.ts';
import { clearLink, connectOwnServer, type OwnServer, startOwnServer } from '../hosts/codex/own-server.ts';
import { atMost } from '../mailbox/patience.ts';
import { say } from '../platform/stderr.ts';
import type { Lock } from '../ports/lock.ts';
import { Fault, failureLine } from '../protocol/errors.ts';
import type { HostConfig } from '../protocol/host-config.ts';
import { hex } from '../protocol/id.ts';
import { quoted } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { isThreadId } from '../protocol/thread.ts';
import { clearSocketPath } from '../router/lifecycle.ts';
import { checkSocketDirectory } from '../router/socket-owner.ts';
import { type Conversation, converse } from '../surfaces/terminal/conversation.ts';
import { environmentOf, readConfig, readConfigPath } from './configured.ts';
import { endReplaced } from './ending.ts';
import { orFail } from './failure.ts';
import { ownServer } from './injected.ts';
import { type Local, openLocal } from './local.ts';
import { projectOf } from './project.ts';
import { reachable } from './reachable.ts';
import { principalOf, recipientIgnored } from './recipient.ts';
import { endAtOnce, line, lineOnce, outsideSessions, type RunnerEnd, runnerEnd } from './runner.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    const file = readConfigPath('codex', rest);
    if (process.platform === 'win32') throw new Fault('unsupported_platform', 'no host runs on Windows');
    const orderly = endAtOnce();
    const config = readConfig(['codex'], file);
    const workspace = config.workspace as string;
    if (!existsSync(workspace)) throw new Fault('invalid_request', `${file}: there is no ${workspace}`);
    const project = await projectOf(workspace);
    const local = await openLocal(environmentOf(config));
    try {
      const socketPath = socketOf(local, config);
      const lock = config.control_socket === undefined ? undefined : takeSocket(socketPath, local);
      await makeRoom(socketPath, local);
      run({ local, config, project, workspace, socketPath, lock });
      orderly();
    } catch (error) {
      local.close();
      throw error;
    }
  });
}

/** As the config says, else one in `runtime/`. Fault where no socket can have such a path. */
function socketOf({ places, random }: Local, { control_socket }: HostConfig): string {
  const socketPath = control_socket ?? path.join(places.runtime, `codex-${hex(random.bytes(4))}.sock`);
  const bytes = Buffer.byteLength(socketPath);
  if (bytes <= limits.socketPathBytesMax) return socketPath;
  const text = `the control socket ${socketPath} has ${bytes} bytes; at most ${limits.socketPathBytesMax}`;
  throw new Fault('socket_path_too_long', text);
}

/** Of two runners that start with one socket, the second would take the app-server of the first for its own. */
function takeSocket(socketPath: string, { locks }: Local): Lock {
  const lock = locks.tryTake(`codex-server-${socketPath}`);
  if (lock !== undefined) return lock;
  throw new Fault('socket_path_occupied', `another runner has the control socket ${socketPath}`);
}

/** Only a socket of this account at which nobody listens is removed. */
async function makeRoom(socketPath: string, local: Local): Promise<void> {
  checkSocketDirectory(socketPath);
  await clearLink(socketPath);
  try {
    await clearSocketPath(socketPath, local);
  } catch (error) {
    if (error instanceof Fault && error.code === 'router_already_running')
      throw new Fault('socket_path_occupied', `something answers at ${socketPath}`, { cause: error });
    throw error;
  }
}

interface Run {
  local: Local;
  config: HostConfig;
  project: string;
  workspace: string;
  socketPath: string;
  /** Of a socket that another runner could be told to make, too. */
  lock: Lock | undefined;
}

/** What has begun, and ends with this process. */
interface Running {
  codex: OwnServer;
  server?: AppServer;
  thread?: string;
  turn: ThreadTurn;
  reach?: ReturnType<typeof reachable>;
  talk?: Conversation | undefined;
  end: RunnerEnd;
}

const requestWaitMs = 30_000;
/** From the end of the connection to that of the process. */
const exitWaitMs = 2_000;

function run(of: Run): void {
  const { local, workspace, socketPath } = of;
  const { clock } = local;
  // A plugin in it acts as this session, and rings nobody.
  const environment = { ...outsideSessions(local.environment), POSTBELL_LISTENER: 'off' };
  const codex = startOwnServer({ program: 'codex', socketPath, directory: workspace, environment, clock });
  const running: Running = {
    codex,
    turn: new ThreadTurn(() => running.thread),
    end: runnerEnd(() => close(of, running)),
  };
  void codex.ended.then((how) => running.end.failing(`postbell: Codex ${how}; this session ends\n`));
  begin(of, running).catch((error: unknown) => running.end.failing(failureLine(error, false)));
}

/** Registers nothing before the thread is there. */
async function begin(of: Run, running: Running): Promise<void> {
  const { local, workspace } = of;
  const ask: AskPerson | undefined = personAt(running);
  const server = await connectOwnServer(
    running.codex,
    { ...of, clock: local.clock },
    {
      clock: local.clock,
      waitMs: requestWaitMs,
      onNotification: (method, params) => running.turn.notified(method, params),
      onRequest: (method, params, withdrawn) => answerRequest(method, params, withdrawn, ask),
    },
  );
  if (running.end.begun) return server?.close();
  if (server === undefined)
    return running.end.failing('postbell: the app-server of Codex has not begun in time\n');
  running.server = server;
  // So that its model can read what it is rung for, whether the plugin is installed or not.
  const config = { 'mcp_servers.postbell': ownServer(local) };
  const started = await server.request('thread/start', { cwd: workspace, config });
  if (running.end.begun) return;
  const thread = 'result' in started ? idOf(started.result.thread) : undefined;
  if (thread === undefined || !isThreadId(thread))
    return running.end.failing('postbell: Codex has named no thread that it made\n');
  running.thread = thread;
  void server.request('account/read', {}).then((account) => {
    if (isLoggedOut(account))
      line('Codex is not logged in (codex login): its turns begin, and get no further');
  });
  void server.closed.then(async (why) => {
    const exit = why === 'closed' ? await atMost(local.clock, running.codex.ended, exitWaitMs) : undefined;
    running.end.failing(`postbell: Codex ${exit ?? endedWords[why]}; this session ends\n`);
  });
  register(of, running, server, thread);
}

const isLoggedOut = (reply: Reply): boolean =>
  'result' in reply && reply.result.account === null && reply.result.requiresOpenaiAuth === true;

function register(
  { local, config, project }: Run,
  running: Running,
  server: AppServer,
  thread: string,
): void {
  const ignored = recipientIgnored(local.environment);
  if (ignored !== undefined) say(`${ignored}\n`);
  const situation = { configured: config.principal_id };
  const principal = principalOf(local.environment, 'codex', thread, situation);
  const isGone = (): boolean => running.end.begun;
  let turnAtMs = local.clock.elapsedMs();
  running.reach = reachable(local, {
    session: { id: thread, host: 'codex', process: undefined, generated: false, principal },
    project,
    bell: managedBell({ server, thread, turn: running.turn, isGone }),
    turnAtMs: () => {
      if (running.turn.running !== undefined) turnAtMs = local.clock.elapsedMs();
      return turnAtMs;
    },
    ...(config.work_summary !== undefined && { summary: config.work_summary }),
    onReplaced: () => endReplaced(running.end.now),
    start: {
      onRegistered: lineOnce(`thread ${thread} of Codex gets the mail of ${quoted(principal)}`),
    },
  });
}

/** Without a terminal nobody can be asked. */
function personAt(running: Running): AskPerson | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  const talk = converse({
    input: stdin,
    output: stdout,
    onLine: () => line('a line here is the answer to a question of Codex, and none was asked'),
    onEnd: () => {
      running.talk = undefined;
    },
  });
  running.talk = talk;
  line('here you are asked what Codex may do; Ctrl-C ends this session and its app-server');
  return async (title, withdrawn) => (await running.talk?.ask(title, withdrawn)) ?? false;
}

const interruptWaitMs = 500;

/** Nobody rings any more when the turn that runs is interrupted, by which what it started ends. */
async function close({ local, lock }: Run, running: Running): Promise<void> {
  const { server, thread, turn, codex, talk } = running;
  talk?.close();
  try {
    await running.reach?.close();
  } finally {
    if (server !== undefined && thread !== undefined && turn.running !== undefined)
      await server.request('turn/interrupt', { threadId: thread, turnId: turn.running }, interruptWaitMs);
    server?.close();
    await codex.end();
    lock?.release();
    local.close();
  }
}
