// What the host itself calls, by its hooks, on the server that already runs: no process is started for it. Its arguments are
// hints; called by a model it tells and changes nothing more than the hooks do.

import { midTurn, progressNudge } from '../../mailbox/mid-turn.ts';
import { pause } from '../../mailbox/patience.ts';
import { isRefusal, type Result } from '../../protocol/errors.ts';
import { boundedLines } from '../../protocol/reminder.ts';
import type { ToolContext } from './tools.ts';

export interface HostEvent {
  event: string;
  session_id?: string;
  source?: string;
  agent_id?: string;
}

/** The session-start hook, which runs beside this call, records the new id within this time. */
const recordWaitMs = 1_000;
const recordLookMs = 25;

/** The host's hook answer: context for the model, or nothing. */
export async function hostEvent(context: ToolContext, event: HostEvent): Promise<object> {
  // A host leaves a field as it is where the event has none.
  const subagent = event.agent_id !== undefined && !/^(\$\{.*\})?$/.test(event.agent_id);
  if (subagent) return {};
  if (event.event === 'SessionStart') return cleared(context, event);
  return event.event === 'PostToolUse' ? between(context, event) : {};
}

async function between(context: ToolContext, { session_id }: HostEvent): Promise<object> {
  const { desk, events } = context;
  const caller = context.caller();
  const { session } = caller;
  if (session === undefined || events === undefined || !isOwn(context, session, session_id)) return {};
  context.inTurn();
  const project: Result<string> = await context.project();
  const mail = isRefusal(project) ? [] : await midTurn(desk, { caller: { ...caller, session }, project });
  const { intervalMs, lastNudgeMs: lastMs } = events;
  const nudge = intervalMs === undefined ? undefined : progressNudge(desk, session, { intervalMs, lastMs });
  if (nudge !== undefined) events.lastNudgeMs = desk.clock.nowMs();
  const lines = [...mail, ...(nudge === undefined ? [] : [nudge])];
  if (lines.length === 0) return {};
  return { hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: boundedLines(lines) } };
}

const isOwn = ({ desk }: ToolContext, session: string, hint: string | undefined): boolean =>
  hint === undefined || desk.store.read((tx) => tx.identity.chain(session)).includes(hint);

/** The id changed. What the launcher's record says counts, not the hint; then whoever waits for the session looks anew. */
async function cleared(context: ToolContext, { session_id, source }: HostEvent): Promise<object> {
  const { desk } = context;
  if (source !== 'clear' || session_id === undefined) return {};
  const untilMs = desk.clock.elapsedMs() + recordWaitMs;
  while (context.caller().session !== session_id) {
    if (desk.clock.elapsedMs() >= untilMs) return {};
    await pause(desk.clock, recordLookMs);
  }
  desk.wake.touch();
  return {};
}
