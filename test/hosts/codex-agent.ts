// A scripted model that handles its mail as the skill says, in Codex: on a notice it receives, does what a message asks for,
// acknowledges what it got, and stops. A prompt `call TOOL JSON` calls that tool once.

import { type Mail, wantedBy } from './agent.ts';
import type { CodexItem, CodexReply, CodexScript } from './codex-model.ts';

export const namespace = 'mcp__postbell';
const tool = (call: string, args: object = {}): CodexReply => ({ call, args, namespace });

export const codexMailAgent: CodexScript = ({ request, newest, outputs }) => {
  const [output] = outputs;
  if (output === undefined) {
    const asked = /^call (\w+) (\{.*\})$/m.exec(newest);
    if (asked !== null) return tool(asked[1] as string, JSON.parse(asked[2] as string));
    const shell = /^run (.*)$/m.exec(newest);
    if (shell !== null) return { call: 'exec_command', args: { cmd: shell[1] } };
    return newest.includes('[Postbell inbox notice]') ? tool('receive_messages') : { say: 'ready' };
  }
  const mail = received(request.body.input);
  if (mail === undefined) return { say: 'done' };
  if (mail.length === 0) return { say: 'nothing waits' };
  const answered = callsSince(request.body.input);
  const asked = mail.flatMap((one) => forwarding(one));
  const next = asked[answered.filter((name) => name === 'message').length];
  if (next !== undefined) return next;
  if (!answered.includes('acknowledge_messages'))
    return tool('acknowledge_messages', { messages: mail.map(({ receipt }) => receipt) });
  return { say: 'mail handled' };
};

function forwarding(mail: Mail): CodexReply[] {
  const wanted = wantedBy(mail);
  return wanted === undefined ? [] : [tool('message', { ...wanted, sender: 'codex' })];
}

/** What the last `receive_messages` of the turn brought. */
function received(input: readonly CodexItem[]): Mail[] | undefined {
  const call = input.findLast(({ name }) => name === 'receive_messages');
  const output = input.find((item) => item.type === 'function_call_output' && item.call_id === call?.call_id);
  if (output === undefined) return undefined;
  const text = typeof output.output === 'string' ? output.output : JSON.stringify(output.output);
  return messagesIn(text);
}

/** The host may write words of its own before the tool's JSON. */
function messagesIn(text: string): Mail[] {
  const at = text.indexOf('{"messages"');
  const plain = at >= 0 ? text.slice(at) : text.slice(text.indexOf('{\\"messages')).replaceAll('\\"', '"');
  for (let end = plain.length; end > 0; end = plain.lastIndexOf('}', end - 1)) {
    try {
      return (JSON.parse(plain.slice(0, end)) as { messages: Mail[] }).messages;
    } catch {
      // words after it
    }
  }
  throw new Error(`no messages in ${text.slice(0, 200)}`);
}

/** Names of the tools called after the last `receive_messages`. */
function callsSince(input: readonly CodexItem[]): string[] {
  const from = input.findLastIndex(({ name }) => name === 'receive_messages');
  return input.slice(from + 1).flatMap(({ type, name }) => (type === 'function_call' ? [name ?? ''] : []));
}
