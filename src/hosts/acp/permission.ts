// What an agent that asks for permission is answered. Options are chosen by kind, and only ever for this once; an agent that
// offers no such option is told that the question is off.

import { isObject } from '../../protocol/json.ts';

/** The name under which our server is given to the agent. */
export const serverName = 'postbell';

export type Permit = 'allow' | 'reject' | 'cancel';

/** The answer as the protocol has it. */
export function outcomeOf(params: unknown, permit: Permit): object {
  const cancelled = { outcome: { outcome: 'cancelled' } };
  if (permit === 'cancel' || !isObject(params) || !Array.isArray(params.options)) return cancelled;
  const kind = permit === 'allow' ? 'allow_once' : 'reject_once';
  const option = (params.options as unknown[]).find((one) => isObject(one) && one.kind === kind);
  const optionId = isObject(option) ? option.optionId : undefined;
  return typeof optionId === 'string' ? { outcome: { outcome: 'selected', optionId } } : cancelled;
}

/**
 * Whether the call is one of a tool of our own server, as the agents write it that were looked at. Every other agent, and
 * every other wording, is no: nothing is allowed by a guess.
 * @param call what the agent said of this call, all of it
 */
export function isOwnCall(call: Record<string, unknown>): boolean {
  const meta = isObject(call._meta) ? call._meta : {};
  return byServer(meta, call.rawInput) ?? byName(call);
}

/** Where the agent names the server apart from the tool, that decides. */
function byServer(meta: Record<string, unknown>, rawInput: unknown): boolean | undefined {
  const claude = isObject(meta.claudeCode) ? meta.claudeCode.mcpServer : undefined;
  if (isObject(claude)) return claude.name === serverName;
  if (meta.is_mcp_tool_call === true && isObject(rawInput)) return rawInput.server === serverName;
  return undefined;
}

/** A tool's name has no two underscores side by side: another server's name cannot hide in it. */
const named = new RegExp(`^mcp__${serverName}__[a-z]+(?:_[a-z]+)*$`);
const titled = new RegExp(`^[a-z_]+ \\(${serverName} MCP Server\\)$`);

function byName({ name, title, kind }: Record<string, unknown>): boolean {
  if (typeof name === 'string') return named.test(name);
  // A command of a shell is of another kind, whatever its words.
  return kind === 'other' && typeof title === 'string' && titled.test(title);
}

/** What a person is shown of the call. */
export function titleOf(call: Record<string, unknown>): string {
  const { title, name, rawInput } = call;
  if (typeof title === 'string') return title;
  if (typeof name === 'string') return name;
  const tool = isObject(rawInput) ? rawInput.tool : undefined;
  return typeof tool === 'string' ? tool : 'a tool that it does not name';
}
