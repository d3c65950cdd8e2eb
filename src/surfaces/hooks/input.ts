// What a host tells a hook on stdin. Anything malformed is an empty payload: a hook never fails for it, but records it.

import type { Clock } from '../../ports/clock.ts';
import { isHumanPrompt } from '../../protocol/human-prompt.ts';
import { isObject } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { isSessionId } from '../../protocol/scope.ts';

export interface HookPayload {
  session_id?: string;
  /** Of SessionStart: startup, resume, clear, compact or fork. */
  source?: string;
  /** Which event the host fires. */
  event?: string;
  /** Of Stop: the turn goes on for a block or a wake. */
  active: boolean;
  /** Of a turn, as Codex numbers them and Claude Code does not. */
  turn_id?: string;
  /** Where the session works. */
  cwd?: string;
  /** Of a prompt: whether a person wrote it. Nothing of its text is kept. */
  human?: boolean;
  /** Of Codex: it keeps nothing of the thread on disk. */
  ephemeral: boolean;
  /** A sub-agent's event: nothing of it concerns the session. */
  subagent: boolean;
  /** Why nothing could be read. */
  problem?: 'malformed' | 'too long';
}

/** What is known of an event whose input says nothing. */
export const nothing: HookPayload = { active: false, ephemeral: false, subagent: false };

/**
 * A host writes it and closes; one that leaves it open is waited for until its object is whole, for 2 s, or until `ended`.
 * @param open the input, until nobody wants more of it
 */
export async function readPayload(
  open: (unwanted: AbortSignal) => AsyncIterable<Buffer>,
  { clock, ended }: { clock: Clock; ended?: AbortSignal },
): Promise<HookPayload> {
  let cancel = (): void => {};
  const late = new Promise<undefined>((resolve) => {
    const stop = (): void => resolve(undefined);
    cancel = clock.after(limits.hookInputWaitMs, stop);
    ended?.addEventListener('abort', stop);
    if (ended?.aborted) stop();
  });
  const unwanted = new AbortController();
  const text = await readBounded(open(unwanted.signal), late).finally(() => {
    cancel();
    unwanted.abort();
  });
  if (text === undefined) return { ...nothing, problem: 'too long' };
  const parsed = parse(text);
  if (parsed === undefined) return { ...nothing, problem: 'malformed' };
  const { session_id, source, hook_event_name, stop_hook_active, turn_id, agent_id, agent_type, cwd } =
    parsed;
  const { prompt } = parsed;
  return {
    active: stop_hook_active === true,
    ephemeral: parsed.transcript_path === null,
    subagent: [agent_id, agent_type].some((one) => typeof one === 'string' && one !== ''),
    ...(typeof session_id === 'string' && isSessionId(session_id) && { session_id }),
    ...(typeof source === 'string' && { source }),
    ...(typeof turn_id === 'string' && { turn_id }),
    ...(typeof cwd === 'string' && { cwd }),
    ...(typeof prompt === 'string' && { human: isHumanPrompt(prompt) }),
    ...(typeof hook_event_name === 'string' && { event: hook_event_name }),
  };
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** A host may end its line. */
const endOfObject = /\}\s*$/;
const blanksMax = 8;

/** Joined before it is decoded: a character may lie across two pieces. Undefined where there is too much. */
async function readBounded(
  input: AsyncIterable<Buffer>,
  late: Promise<undefined>,
): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const reader = input[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([reader.next(), late]);
    if (next === undefined || next.done === true) return Buffer.concat(pieces).toString('utf8');
    bytes += next.value.length;
    if (bytes > limits.hookInputBytesMax) return undefined;
    pieces.push(next.value);
    if (endOfObject.test(next.value.subarray(-blanksMax).toString('latin1'))) {
      const text = Buffer.concat(pieces).toString('utf8');
      if (parse(text) !== undefined) {
        // Not waited for: behind a read that nobody answers it never ends.
        void reader.return?.();
        return text;
      }
    }
  }
}
