// What a host tells a hook on stdin. Anything malformed is an empty payload: a hook never fails for it.

import { addAbortSignal, type Readable } from 'node:stream';
import type { Clock } from '../../ports/clock.ts';
import { isObject } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { isSessionId } from '../../protocol/scope.ts';

export interface HookPayload {
  session_id?: string;
  /** Of SessionStart: startup, resume, clear, compact or fork. */
  source?: string;
  /** A sub-agent's event: nothing of it concerns the session. */
  subagent: boolean;
}

/** A host writes it and closes; one that leaves it open is waited for 5 s, or until `ended`. */
export async function readPayload(
  input: Readable,
  { clock, ended }: { clock: Clock; ended?: AbortSignal },
): Promise<HookPayload> {
  const late = new AbortController();
  const stop = (): void => late.abort();
  const cancel = clock.after(limits.hookInputWaitMs, stop);
  ended?.addEventListener('abort', stop);
  const text = await readBounded(late.signal, input).finally(cancel);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { subagent: false };
  }
  if (!isObject(parsed)) return { subagent: false };
  const { session_id, source, agent_id, agent_type } = parsed;
  return {
    subagent: agent_id !== undefined || agent_type !== undefined,
    ...(typeof session_id === 'string' && isSessionId(session_id) && { session_id }),
    ...(typeof source === 'string' && { source }),
  };
}

async function readBounded(signal: AbortSignal, input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, input)) {
      bytes += (chunk as Buffer).length;
      if (bytes > limits.hookInputBytesMax) return '';
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return Buffer.concat(chunks).toString('utf8');
}
