// No storm: whatever comes in a minute, and whatever breaks, the turns of a session stay bounded. The figures are printed.

import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { answer } from '../../process/postbell.ts';
import { mailAgent } from '../agent.ts';
import type { StreamSession } from '../claude.ts';
import { describeWithClaude } from '../installed.ts';
import type { Script } from '../model.ts';
import { isListener, type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

const turnsOf = (session: StreamSession): number =>
  session.events.filter(({ type }) => type === 'result').length;
const tool = (name: string): string => `mcp__plugin_postbell_postbell__${name}`;

interface Mail {
  message_id: string;
  sender: string;
  receipt: object;
}

/** Takes in whatever it is told of, and answers every message with as good as nothing. */
function answering(inboxes: ReadonlyMap<string, string>): Script {
  const takesIn = mailAgent(inboxes);
  return (turn) => {
    const me = inboxes.get(turn.session) ?? '';
    const received = turn.toolResults.findLast(({ name }) => name === tool('receive_messages'));
    if (!me.startsWith('polite') || received === undefined) return takesIn(turn);
    const mail = (JSON.parse(received.text) as { messages: Mail[] }).messages;
    if (mail.length === 0) return { say: 'nothing waits' };
    return {
      tools: [
        { name: tool('acknowledge_messages'), input: { messages: mail.map(({ receipt }) => receipt) } },
        ...mail.map(({ message_id, sender }, nth) => ({
          name: tool('message'),
          input: {
            action: 'send',
            sender: me,
            recipient: sender,
            payload: `Variant ${nth} breaks on line ${turn.requestNumber}; which of the other two do you want?`,
            reply_to: message_id,
            idempotency_key: message_id,
          },
        })),
      ],
    };
  };
}

describeWithClaude('no storm', () => {
  it('in a minute of 100 messages, of two agents that answer everything, and of a listener that is killed over and over', async () => {
    let script: Script = () => undefined;
    office = await openOffice({ script: (turn) => script(turn) });
    script = answering(office.inboxes);
    const busy = await office.stream('busy');
    const [one, two] = [await office.stream('polite-1'), await office.stream('polite-2')];
    const hunted = await office.stream('hunted');
    let project = '';
    for (const name of ['busy', 'polite-1', 'polite-2', 'hunted']) project = await office.reachable(name);
    const untilMs = Date.now() + 60_000;
    let killed = 0;
    const sending = (async () => {
      for (let nth = 0; nth < 100; nth += 1) {
        await office.send('busy', `message ${nth}`);
        await pause(Math.max(0, (untilMs - Date.now()) / (100 - nth) - 60));
      }
    })();
    const hunting = (async () => {
      for (let nth = 0; Date.now() < untilMs; nth += 1) {
        if (nth % 10 === 0) hunted.say('go on');
        if (nth % 10 === 5) await office.send('hunted', `message ${nth}`);
        for (const pid of hunted.living().filter(isListener)) {
          process.kill(pid, 'SIGKILL');
          killed += 1;
        }
        await pause(500);
      }
    })();
    const begin = [
      'message',
      'send',
      '--project',
      project,
      '--sender',
      'polite-2',
      '--recipient',
      'polite-1',
    ];
    const once = ['--idempotency-key', 'k', '--payload-stdin'];
    await answer(office.env, office.project, [...begin, ...once], 'which variant do you want?');
    await Promise.all([sending, hunting]);
    const figures = {
      'turns of a session that was sent 100 messages': turnsOf(busy),
      'turns of two agents that answer each other': turnsOf(one) + turnsOf(two),
      'turns of a session whose listener was killed': turnsOf(hunted),
      'listeners killed': killed,
    };
    console.log(figures);
    // Five notices a minute, and what their turns found when they ended.
    expect(turnsOf(busy)).toBeLessThanOrEqual(20);
    expect(turnsOf(one) + turnsOf(two)).toBeGreaterThan(2);
    expect(turnsOf(one) + turnsOf(two)).toBeLessThanOrEqual(40);
    // Twelve prompts of a person, and what was rung between them.
    expect(turnsOf(hunted)).toBeLessThanOrEqual(30);
    expect(killed).toBeGreaterThan(10);
    // What was not taken in yet waits.
    const texts = office.texts(busy.sessionId());
    const { remaining, messages } = await answer(office.env, office.project, [
      'inbox',
      'receive',
      '--recipient',
      'busy',
    ]);
    const taken = Array.from({ length: 100 }, (_, nth) => nth).filter((nth) =>
      texts.includes(`"message ${nth}"`),
    );
    expect(taken.length + (remaining as number) + (messages as unknown[]).length).toBe(100);
  });
});
