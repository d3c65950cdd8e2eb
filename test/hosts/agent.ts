// A scripted model that handles its mail as the skill says: on a notice it receives, acknowledges what it got, does
// what a message asks for, and stops.

import type { Script, ToolResult } from './model.ts';

const tool = (name: string): string => `mcp__plugin_postbell_postbell__${name}`;

interface Mail {
  message_id: string;
  sender: string;
  payload: string;
  receipt: { sender: string; msg_id: string };
}

/** @param inbox name of each session, as it would know it from its session start */
export function mailAgent(inboxes: ReadonlyMap<string, string>): Script {
  return ({ session, newest, toolResults }) => {
    const me = inboxes.get(session) ?? 'somebody';
    const received = last(toolResults, 'receive_messages');
    if (received !== undefined) {
      const mail = (JSON.parse(received.text) as { messages: Mail[] }).messages;
      if (mail.length === 0) return { say: 'nothing waits' };
      return {
        tools: [
          { name: tool('acknowledge_messages'), input: { messages: mail.map(({ receipt }) => receipt) } },
          ...mail.flatMap((one) => forwarding(me, one)),
        ],
      };
    }
    if (last(toolResults, 'acknowledge_messages') !== undefined) return { say: 'mail handled' };
    if (newest.includes('[Postbell inbox notice]'))
      return { tools: [{ name: tool('receive_messages'), input: {} }] };
    return undefined;
  };
}

/** `tell NAME: TEXT` is sent on. */
function forwarding(me: string, mail: Mail) {
  const asked = /^tell (\S+): (.*)$/s.exec(mail.payload);
  if (asked === null) return [];
  const [, recipient, payload] = asked;
  const input = {
    action: 'send',
    sender: me,
    recipient,
    payload,
    reply_to: mail.message_id,
    idempotency_key: mail.message_id,
  };
  return [{ name: tool('message'), input }];
}

const last = (results: readonly ToolResult[], name: string): ToolResult | undefined =>
  results.findLast((result) => result.name === tool(name));
