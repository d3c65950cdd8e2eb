// The app-server bell of the product, over an app-server whose thread is the fixture host. A turn of its host is one that
// somebody else began.

import type { AppServer, Reply } from '../../src/hosts/codex/app-server.ts';
import { managedBell, ThreadTurn } from '../../src/hosts/codex/managed.ts';
import type { MakeAdapter } from './adapters.ts';
import { FixtureHost } from './fixture-host.ts';

const thread = 'fixture';
const errors = { busy: -32_001, unknown_method: -32_600, invalid: -32_602 };

export const managed: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  const turn = new ThreadTurn(() => thread);
  const tell = (event: 'started' | 'completed', id: string): void =>
    turn.notified(`turn/${event}`, { threadId: thread, turn: { id } });
  let turns = 0;
  const request = async (_: string, params: object): Promise<Reply> => {
    const [{ text }] = (params as { input: [{ text: string }] }).input;
    const said = await host.call(text);
    if (!said.ok)
      return said.code === 'closed'
        ? { lost: 'closed' }
        : { error: { code: errors[said.code], message: '' } };
    turns += 1;
    const id = `turn-${turns}`;
    tell('started', id);
    tell('completed', id);
    return { result: { turn: { id } } };
  };
  const server: AppServer = { request, closed: new Promise(() => {}), close: () => {} };
  const endTurn = host.endTurn.bind(host);
  host.startTurn = () => {
    host.inTurn = true;
    tell('started', 'other');
  };
  host.endTurn = () => {
    endTurn();
    tell('completed', 'other');
  };
  return {
    bell: managedBell({ server, thread, turn, isGone: () => false }),
    host,
    evidence: 'answer',
    acceptedState: 'host_queued',
    rings: () => host.given,
    refuse: () => {
      host.script = 'refuse for good';
    },
    fallSilent: () => {
      host.script = 'silent';
      return { answer: () => host.answerLate() };
    },
    mend: () => {
      host.script = 'accept';
    },
  };
};
