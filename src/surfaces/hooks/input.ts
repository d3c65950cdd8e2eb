// What a host tells a hook on stdin. Anything malformed is an empty payload: a hook never fails for it.

import type { Readable } from 'node:stream';
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

export async function readPayload(input: Readable): Promise<HookPayload> {
  const text = await readBounded(input);
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

async function readBounded(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    bytes += (chunk as Buffer).length;
    if (bytes > limits.hookInputBytesMax) return '';
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
