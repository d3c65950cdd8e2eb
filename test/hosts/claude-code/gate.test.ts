// CC6, CC7 and CC16: what happens when a turn ends.

import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { root } from '../../process/postbell.ts';
import { streamSession } from '../claude.ts';
import { bothButInCi, describeWithClaude } from '../installed.ts';
import type { Script } from '../model.ts';
import { installPlugin, isListener, noticesIn, type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

const blocks = (text: string): number => text.match(/Stop hook feedback:\nPostbell: /g)?.length ?? 0;

describeWithClaude(
  'a turn ends',
  () => {
    it('[HOST-241, HOST-081] CC6: unread mail blocks the Stop once, with the lines of the prompt; new mail blocks again', async () => {
      office = await openOffice({ script: () => ({ say: 'I leave it' }) });
      Object.assign(office.env, { POSTBELL_LISTENER: 'off' });
      await office.send('alice', 'one');
      const session = await office.stream('alice');
      const turns = async (prompt: string, count: number): Promise<string[]> => {
        const before = office.turns(session.sessionId()).length;
        session.say(prompt);
        await session.waitResult(count, 20_000);
        return office
          .turns(session.sessionId())
          .slice(before)
          .map((request) => office.model.text(request));
      };
      const [asked = '', blocked = '', ...rest] = await turns('hello', 1);
      expect(rest).toEqual([]);
      const [line = ''] = /Postbell: 1 message waiting for "alice" in project .*/.exec(asked) ?? [];
      expect(line).not.toBe('');
      expect(blocked).toContain(`Stop hook feedback:\n${line}\nRead this mail, act on what you accept`);
      expect(await turns('again', 2)).toHaveLength(1);
      await office.send('alice', 'two');
      const more = await turns('once more', 3);
      expect(more).toHaveLength(2);
      expect(more[1]).toContain('Postbell: 2 messages waiting for "alice"');
      expect(
        office
          .records()
          .filter(({ hook }) => hook === 'stop-gate')
          .map(({ reason }) => reason),
      ).toEqual(['blocked for 1', 'nothing new', 'nothing new', 'blocked for 1', 'nothing new']);
    });

    it('[HOST-242, HOST-123] CC7: the gate beside another hook that blocks, and beside the listener that starts: each message is announced once', async () => {
      const script: Script = ({ newest }) =>
        newest.includes('[Postbell inbox notice]') ? { sleepMs: 2_500, say: 'I leave it' } : { say: 'fine' };
      office = await openOffice({
        script,
        settings: {
          hooks: {
            Stop: [
              {
                hooks: [
                  {
                    type: 'command',
                    command: 'node',
                    args: [
                      '-e',
                      `let t='';process.stdin.on('data',d=>t+=d).on('end',()=>{if(!JSON.parse(t).stop_hook_active)console.log(JSON.stringify({decision:'block',reason:'FOREIGN-REASON'}))})`,
                    ],
                    timeout: 5,
                  },
                ],
              },
            ],
          },
        },
      });
      const session = await office.stream('alice');
      await office.reachable('alice');
      const before = office.model.requests.length;
      await office.send('alice', 'first');
      await office.model.waitFor(({ session: id }) => id === session.sessionId(), 10_000, before);
      // Without the listener of this turn the row waits for that of the Stop at which the gate blocks for it.
      await expect.poll(() => session.living().filter(isListener).length, { timeout: 2_000 }).toBe(1);
      for (const pid of session.living().filter(isListener)) process.kill(pid, 'SIGKILL');
      await office.sendExact(session.sessionId(), 'second');
      await session.waitResult(1, 20_000);
      await pause(6_000);
      const texts = office.turns(session.sessionId()).map((request) => office.model.text(request));
      const last = texts.at(-1) as string;
      expect(noticesIn(last)).toBe(1);
      expect(blocks(last)).toBe(1);
      expect(last).toContain('waiting for the live session');
      expect(session.events.filter(({ type }) => type === 'result')).toHaveLength(1);
      const turns = texts.length;
      session.say('hello');
      await session.waitResult(2, 20_000);
      const after = office.texts(session.sessionId());
      expect(after).toContain('FOREIGN-REASON');
      expect(office.turns(session.sessionId()).length).toBe(turns + 2);
    });

    it('[HOST-251, HOST-040, HOST-091] CC16: a hook whose program cannot run makes no loop of turns, and blocks nothing', async () => {
      office = await openOffice({ market: undefined });
      const market = path.join(office.dir, 'market');
      mkdirSync(market);
      cpSync(path.join(root, '.claude-plugin'), path.join(market, '.claude-plugin'), { recursive: true });
      cpSync(path.join(root, 'plugins'), path.join(market, 'plugins'), { recursive: true });
      await installPlugin(office.env, market, office.project);
      const throwing = path.join(office.dir, 'throws.cjs');
      writeFileSync(throwing, 'throw new Error("broken")');
      const exiting = path.join(office.dir, 'exits.cjs');
      writeFileSync(exiting, 'process.exit(1)');
      const broken = [
        {},
        { POSTBELL_BIN: throwing },
        { POSTBELL_BIN: exiting },
        { POSTBELL_BIN: '/nowhere' },
      ];
      for (const more of broken) {
        const session = streamSession(
          { ...office.env, ...more, POSTBELL_RECIPIENT: 'alice' },
          office.project,
        );
        office.atEnd(session.end);
        session.say('hello');
        await session.waitResult(1, 20_000);
        await pause(1_500);
        expect([more, office.turns(session.sessionId()).length]).toEqual([more, 1]);
        await session.end();
      }
      expect(office.records()).toEqual([]);
    });
  },
  bothButInCi,
);

describeWithClaude('a chain', () => {
  it('[HOST-089] of blocks: a turn to which each Stop brings new mail ends by the host\u2019s own limit', async () => {
    let stops = 0;
    office = await openOffice({
      script: ({ newest, hasTools }) => {
        if (hasTools && newest.includes('Stop hook feedback:\nPostbell')) stops += 1;
        return { sleepMs: hasTools ? 900 : 0, say: 'and on' };
      },
    });
    Object.assign(office.env, { POSTBELL_LISTENER: 'off' });
    const session = await office.stream('alice');
    await office.send('alice', 'the first');
    let sent = 1;
    session.say('begin');
    let done = false;
    const ended = session.waitResult(1, 60_000).then(() => (done = true));
    while (!done && sent < 30) {
      const before = office.turns(session.sessionId()).length;
      await Promise.race([
        ended,
        office.model.waitFor(() => office.turns(session.sessionId()).length > before, 20_000).catch(() => {}),
      ]);
      if (done) break;
      await office.send('alice', `new in round ${sent}`);
      sent += 1;
    }
    await ended;
    expect(sent).toBeGreaterThanOrEqual(9);
    expect(stops).toBeLessThanOrEqual(9);
    console.log({ 'blocks in one chain': stops, messages: sent });
  });
});
