// SessionStart: which session the host process runs from now on, so that an id that /clear gave away still names the
// same session; and one line that tells the agent who it is.

import { quoted } from '../../protocol/json.ts';
import { type HostProcess, recordSessionStart } from '../../sessions/alias.ts';
import type { HookPayload } from './input.ts';

type Ports = Parameters<typeof recordSessionStart>[0];

/** @returns what goes to stdout: the host's hook answer, or nothing */
export async function sessionStart(
  ports: Ports,
  payload: HookPayload,
  host: HostProcess | undefined,
  identity: { principal: string; project: Promise<string | undefined> },
): Promise<string> {
  const { session_id, source = 'startup' } = payload;
  if (payload.subagent || session_id === undefined) return '';
  if (host !== undefined) await recordSessionStart(ports, host, { session_id, source });
  const project = await identity.project;
  const where = project === undefined ? '' : ` in project ${quoted(project)}`;
  const context = `Postbell: this session is ${quoted(session_id)}; its inbox is ${quoted(identity.principal)}${where}.`;
  return JSON.stringify({
    hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: context },
  });
}
