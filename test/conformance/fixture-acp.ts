// The ACP bell of the product over a connection whose agent is the fixture host: it takes a prompt, says a word, and its turn
// is over; or it refuses it, or says nothing.

import { acpBell } from '../../src/hosts/acp/bell.ts';
import { AgentRefused, type Link, LinkClosed } from '../../src/hosts/acp/link.ts';
import { AcpSession, type Stop } from '../../src/hosts/acp/session.ts';
import type { Bell } from '../../src/ports/bell.ts';
import type { HostCalls } from './fixture-bell.ts';

const sessionId = 'fixture';
const typed = 'typed by a person';
const errors = { busy: -32_603, unknown_method: -32_601, invalid: -32_602 };

export interface FixtureAcp {
  bell: Bell;
  /** How each prompt of a ring ended. */
  stops: Stop[];
  /** A person prompts the agent; the returned function ends that turn. */
  type(): () => void;
}

export function fixtureAcp(host: Pick<HostCalls, 'call'>): FixtureAcp {
  const stops: Stop[] = [];
  const session = new AcpSession({ note: () => {}, permit: () => 'reject' });
  /** Of the turn that a person began last; it may be over before its prompt has arrived. */
  let over: Promise<void> = Promise.resolve();
  const prompt = async (text: string): Promise<object> => {
    if (text === typed) await over;
    else {
      const said = await host.call(text);
      if (!said.ok) throw said.code === 'closed' ? new LinkClosed() : new AgentRefused(errors[said.code], '');
      const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'ok' } };
      session.onUpdate({ sessionId, update });
    }
    return { stopReason: 'end_turn' };
  };
  const link: Link = {
    request: async (method, params) => {
      if (method === 'initialize') return { protocolVersion: 1 };
      if (method === 'session/new') return { sessionId };
      await begun;
      return prompt((params as { prompt: [{ text: string }] }).prompt[0].text);
    },
    notify: async () => {},
  };
  const begun = session.start(link, '/', { command: 'none', words: [], environment: {} });
  return {
    bell: acpBell({
      session,
      hostKind: 'gemini',
      toolsLoaded: () => true,
      onStop: (stop) => void stops.push(stop),
    }),
    stops,
    type: () => {
      let endTurn = (): void => {};
      over = new Promise((resolve) => (endTurn = resolve));
      session.type(typed);
      return () => endTurn();
    },
  };
}
