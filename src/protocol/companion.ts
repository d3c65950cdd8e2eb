// The companion of a Codex thread: what its record says to the hooks and companions that come after it, and what they may ask
// of it over its private socket.

import { isObject } from './json.ts';
import { isThreadId } from './thread.ts';

/** What the hook hands the companion that it starts, as one line on stdin. */
export interface CompanionTask {
  thread: string;
  /** The thread's directory. */
  workspace: string;
  /** The Codex that runs the thread; absent where it is not known, and then not watched. */
  host?: { pid: number; start_time: string };
  /** The program of that Codex, and its home where that is not the default. */
  program: string;
  home?: string;
  /** Its environment is that of an app-server which several terminals share. */
  shared: boolean;
  /** Why the thread's queue cannot be used: the thread is then known, and has no bell. */
  deaf?: 'exec' | 'ephemeral';
}

/** What the companion answers the hook, as one line on stdout. */
export type CompanionAnswer = { registered: true } | { failed: string };

/** Owner-private, in `runtime/`. */
export interface CompanionRecord {
  version: 1;
  pid: number;
  start_time: string;
  thread: string;
  workspace: string;
  token: string;
  socket: string;
  /** Of the socket; absent before that is bound, and in records of an earlier format. */
  inode?: string;
  state: 'starting' | 'registered';
  /** Sockets of earlier companions that may not be removed, and are in nobody's way. */
  former?: readonly string[];
}

/**
 * `replace`: another companion takes the thread over, now. `end`: the session has ended, in that workspace. `summary`: what it
 * works on, as its agent says.
 */
export type CompanionVerb =
  | { verb: 'replace' }
  | { verb: 'end'; workspace: string }
  | { verb: 'summary'; text: string };
export type CompanionRequest = { token: string } & CompanionVerb;

/**
 * What became of a request. `declined`: it was heard, and is not for this companion to do; `unheard`: no answer in time, so that it may
 * be done or not; `none`: no companion is there.
 */
export type CompanionHeard = 'heard' | 'declined' | 'unheard' | 'none';

const isPlainText = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !value.includes('\0');

/** Undefined for what is no record. */
export function readCompanionRecord(text: string): CompanionRecord | undefined {
  const record = parse(text);
  if (record === undefined) return undefined;
  const { version, pid, start_time, thread, workspace, token, socket, inode, state, former } = record;
  const texts = [start_time, workspace, token, socket].every(isPlainText);
  const known =
    version === 1 &&
    Number.isInteger(pid) &&
    texts &&
    typeof thread === 'string' &&
    isThreadId(thread) &&
    (inode === undefined || typeof inode === 'string') &&
    (former === undefined || isTexts(former)) &&
    (state === 'starting' || state === 'registered');
  return known ? (record as unknown as CompanionRecord) : undefined;
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

export function readCompanionTask(text: string): CompanionTask | undefined {
  const task = parse(text);
  return typeof task?.thread === 'string' && isThreadId(task.thread) && typeof task.workspace === 'string'
    ? (task as unknown as CompanionTask)
    : undefined;
}

export function readCompanionRequest(line: string): CompanionRequest | undefined {
  const request = parse(line);
  if (typeof request?.token !== 'string') return undefined;
  const { token, verb, workspace, text } = request;
  if (verb === 'replace') return { token, verb };
  if (verb === 'end' && typeof workspace === 'string') return { token, verb, workspace };
  return verb === 'summary' && typeof text === 'string' ? { token, verb, text } : undefined;
}

/** Undefined also where it is none of the answers. */
export function readCompanionAnswer(text: string): CompanionAnswer | undefined {
  const answer = parse(text);
  if (answer?.registered === true) return { registered: true };
  return typeof answer?.failed === 'string' ? { failed: answer.failed } : undefined;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
