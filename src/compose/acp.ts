// `postbell host acp`: starts an agent, is the client of its one session, and rings it. A person at the terminal talks to the
// agent through it; without a terminal it asks nobody and shows nothing.

import { type AgentProcess, startAgent } from '../hosts/acp/agent.ts';
import { acpBell, toolsNotLoaded } from '../hosts/acp/bell.ts';
import { type AgentName, untried } from '../hosts/acp/known.ts';
import { AgentRefused, LinkClosed, linkTo } from '../hosts/acp/link.ts';
import type { Permit } from '../hosts/acp/permission.ts';
import { AcpSession, type Stop } from '../hosts/acp/session.ts';
import { atMost, pause, writePatiently } from '../mailbox/patience.ts';
import { awaitMark, isMarked, removeMark } from '../platform/marks.ts';
import { say } from '../platform/stderr.ts';
import { Fault, failureLine } from '../protocol/errors.ts';
import { type HostConfig, startedHosts } from '../protocol/host-config.ts';
import { hex } from '../protocol/id.ts';
import { beginningOf, quoted } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { type Conversation, converse } from '../surfaces/terminal/conversation.ts';
import { environmentOf, readConfig, readConfigPath } from './configured.ts';
import { endReplaced } from './ending.ts';
import { note, orFail } from './failure.ts';
import { agentEnvironment, type Injected, injectedServer, toolsMark } from './injected.ts';
import { type Local, openLocal } from './local.ts';
import { projectOf } from './project.ts';
import { reachable, type Session } from './reachable.ts';
import { principalOf, recipientIgnored } from './recipient.ts';
import { endAtOnce, line, lineOnce, type RunnerEnd, runnerEnd } from './runner.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    const file = readConfigPath('acp', rest);
    if (process.platform === 'win32') throw new Fault('unsupported_platform', 'no host runs on Windows');
    const orderly = endAtOnce();
    const config = readConfig(startedHosts, file);
    const find = (): Promise<string> => projectOf(config.workspace as string);
    // Git may be late on a busy machine, and here nobody asks again later.
    const project = await find().catch(find);
    const local = await openLocal(environmentOf(config));
    const session = sessionOf(local, config);
    try {
      run({ local, config, project, session });
      orderly();
    } catch (error) {
      removeMark(toolsMark(local.places, session.id));
      local.close();
      throw error;
    }
  });
}

/** A fresh id at each start: what an earlier session was handed is not this one's. */
function sessionOf(local: Local, config: HostConfig): Session {
  const ignored = recipientIgnored(local.environment);
  if (ignored !== undefined) say(`${ignored}\n`);
  const id = hex(local.random.bytes(8));
  const host = config.host === 'gemini' ? 'gemini' : 'other';
  const principal = principalOf(local.environment, host, id, { configured: config.principal_id });
  return { id, host, process: undefined, generated: true, principal };
}

interface Run {
  local: Local;
  config: HostConfig;
  project: string;
  session: Session;
}

/** What has begun, and ends with this process. */
interface Running {
  agent: AgentProcess;
  acp: AcpSession;
  /** Of the injected server. */
  mark: string;
  talk?: Conversation | undefined;
  reach?: ReturnType<typeof reachable>;
  end: RunnerEnd;
}

function run(of: Run): void {
  const { local, config, session } = of;
  const { environment, places, clock } = local;
  const workspace = config.workspace as string;
  const whose = { sessionId: session.id, principal: session.principal, workspace };
  const injected: Injected = { places, environment, ...whose };
  const mark = toolsMark(places, session.id);
  awaitMark(mark);
  const command = config.command as readonly string[];
  const agent = startAgent({
    command,
    directory: workspace,
    environment: agentEnvironment(injected),
    clock,
    complain: say,
  });
  const acp = new AcpSession({
    note: line,
    show: (text) => running.talk?.show(text),
    permit: (title, own, withdrawn) => permit(config, running.talk, { title, own, withdrawn }),
  });
  const running: Running = {
    agent,
    acp,
    mark,
    end: runnerEnd(() => close(local, running)),
  };
  const gone = async (why?: string): Promise<void> => {
    acp.gone();
    const how = why ?? (await atMost(clock, agent.ended, exitWaitMs)) ?? 'closed its connection';
    running.end.failing(`postbell: the agent ${how}; this session ends\n`);
  };
  void agent.ended.then(() => gone());
  const link = linkTo(agent, acp, (why) => void gone(why));
  begin(of, running, acp.start(link, workspace, injectedServer(injected), config.mode)).catch((error) => {
    // Its end says why.
    if (error instanceof LinkClosed) return;
    const refused = error instanceof AgentRefused;
    const why = refused && quoted(beginningOf(error.message, refusalCharactersMax));
    running.end.failing(
      refused ? `postbell: the agent refused to begin: ${why}\n` : failureLine(error, false),
    );
  });
}

/** Registers nothing before the agent has a session, and is known to have our tools or to have had the time for it. */
async function begin(of: Run, running: Running, began: Promise<AgentName>): Promise<void> {
  const { local, project, session, config } = of;
  const { acp, mark, end } = running;
  const named = await atMost(local.clock, began, limits.acpStartWaitMs);
  if (named === undefined) return end.failing('postbell: the agent has not begun a session in time\n');
  const called = quoted(`${named.name} ${named.version}`);
  const unsure = untried(named);
  if (unsure !== undefined) line(`${called}: ${unsure}`);
  const loaded = toolsLoadedBy(mark);
  await untilLoaded(local, loaded);
  if (end.begun || acp.isGone()) return;
  if (!loaded())
    line(`the agent has not loaded the tools of Postbell (${toolsNotLoaded}); this session cannot be rung`);
  const onStop = (stop: Stop, attemptId: string | undefined): void => recordStop(local, stop, attemptId);
  running.reach = reachable(local, {
    session,
    project,
    bell: acpBell({ session: acp, hostKind: session.host, toolsLoaded: loaded, onStop }),
    turnAtMs: () => local.clock.elapsedMs(),
    ...(config.work_summary !== undefined && { summary: config.work_summary }),
    onReplaced: () => endReplaced(end.now),
    start: {
      onRegistered: lineOnce(
        `session ${session.id} of ${called} gets the mail of ${quoted(session.principal)}`,
      ),
    },
  });
  running.talk = openTerminal(acp, end.now);
}

/** Nobody rings any more when the turn that runs is stopped. The agent ends whatever else fails. */
async function close(local: Local, running: Running): Promise<void> {
  running.talk?.close();
  removeMark(running.mark);
  try {
    await running.reach?.close();
  } finally {
    const beganMs = local.clock.elapsedMs();
    await atMost(local.clock, running.acp.cancel(), cancelWaitMs);
    await running.agent.end(beganMs);
    local.close();
  }
}

/** Of an agent's reason, as much as a person reads. */
const refusalCharactersMax = 500;
/** From the end of an agent's output to its own. */
const exitWaitMs = 2_000;
const loadedLookMs = 100;
/** For the answer to a prompt that was cancelled. */
const cancelWaitMs = 1_000;

/** Whether the agent has asked for the tools, once and for all. */
function toolsLoadedBy(mark: string): () => boolean {
  let loaded = false;
  return () => {
    if (loaded) return true;
    loaded = isMarked(mark);
    if (loaded) removeMark(mark);
    return loaded;
  };
}

async function untilLoaded({ clock }: Local, loaded: () => boolean): Promise<void> {
  const untilMs = clock.elapsedMs() + limits.acpToolsWaitMs;
  while (!loaded() && clock.elapsedMs() < untilMs) await pause(clock, loadedLookMs);
}

function openTerminal(acp: AcpSession, end: () => void): Conversation | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  line('what you type is prompted; Ctrl-C ends this session and its agent');
  return converse({ input: stdin, output: stdout, onLine: (text) => acp.type(text), onEnd: end });
}

/** Where nobody can be asked, only our own tools are used without a word. */
async function permit(
  { permission }: HostConfig,
  talk: Conversation | undefined,
  { title, own, withdrawn }: { title: string; own: boolean; withdrawn: AbortSignal },
): Promise<Permit> {
  if (permission === 'reject') return 'reject';
  const allowed = talk === undefined ? own : await talk.ask(title, withdrawn);
  return allowed ? 'allow' : 'reject';
}

/** Of the agent's words as much as can be one. */
const reasonCharactersMax = 64;

function recordStop({ clock, store }: Local, stop: Stop, attemptId: string | undefined): void {
  const said = saidOf(stop);
  if (said === undefined || said === 'end_turn') return;
  const reason = beginningOf(said, reasonCharactersMax);
  line(`the turn of a notice ended with ${quoted(reason)}`);
  if (attemptId === undefined) return;
  const write = (): Promise<void> => store.write((tx) => tx.attempts.noteStop(attemptId, reason));
  writePatiently(clock, stopPatienceMs, write).catch(note);
}

/** Undefined where nothing is known of it. */
function saidOf(stop: Stop): string | undefined {
  if (stop.stop === 'ended') return stop.reason;
  return stop.stop === 'refused' ? `error ${stop.code}` : undefined;
}

const stopPatienceMs = 60_000;
