// A scripted model that handles its mail as the skill says: on a notice it receives, acknowledges what it got, does
// what a message asks for, and stops. A prompt `call TOOL JSON` calls that tool once.

import type { Script, ToolResult } from './model.ts';

const tool = (name: string): string => `mcp__plugin_postbell_postbell__${name}`;

export interface Mail {
  message_id: string;
  sender: string;
  payload: string;
  /** Of mail from another machine. */
  origin?: { peer: string; return_route?: { session?: string } };
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
    const [, asked, input] = /^call (\w+) (\{.*\})$/m.exec(newest) ?? [];
    if (asked !== undefined)
      return { tools: [{ name: tool(asked), input: JSON.parse(input as string) as object }] };
    if (newest.includes('[Postbell inbox notice]'))
      return { tools: [{ name: tool('receive_messages'), input: {} }] };
    return undefined;
  };
}

function forwarding(me: string, mail: Mail) {
  const wanted = wantedBy(mail);
  return wanted === undefined ? [] : [{ name: tool('message'), input: { ...wanted, sender: me } }];
}

/** What a message asks to be sent: `tell NAME: TEXT` is sent on, the sum of `add A and B` goes back to whoever asked. */
export function wantedBy(mail: Mail): Record<string, unknown> | undefined {
  const { message_id, payload } = mail;
  const common = { action: 'send', reply_to: message_id, idempotency_key: message_id };
  const [, recipient, text] = /^tell (\S+): (.*)$/s.exec(payload) ?? [];
  if (recipient !== undefined) return { ...common, recipient, payload: text };
  const [, one, other] = /^add (\d+) and (\d+)$/.exec(payload) ?? [];
  if (one === undefined) return undefined;
  return { ...common, ...wayBack(mail), payload: `the sum is ${Number(one) + Number(other)}` };
}

/** As the tool and the skill say it. */
function wayBack({ sender, origin }: Mail): Record<string, unknown> {
  if (origin === undefined) return { recipient: sender };
  const session = origin.return_route?.session;
  const to = session === undefined ? { recipient: sender } : { recipient: session, target_kind: 'session' };
  return { peer: origin.peer, ...to };
}

const last = (results: readonly ToolResult[], name: string): ToolResult | undefined =>
  results.findLast((result) => result.name === tool(name));
