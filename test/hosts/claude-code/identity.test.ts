// CC8 and CC9: one session under several ids, and several under one name.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { postbell, program } from '../../process/postbell.ts';
import { bothButInCi, describeWithClaude } from '../installed.ts';
import type { Script } from '../model.ts';
import { isListener, type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

/** The program as it is, but what its server is sent is written down. */
const teeOf = (real: string, log: string): string => `
if (process.argv[2] === 'mcp') {
  const { appendFileSync } = require('node:fs');
  process.stdin.on('data', (chunk) => appendFileSync(${JSON.stringify(log)}, chunk));
}
process.argv[1] = ${JSON.stringify(real)};
require(${JSON.stringify(real)});
`;

/** What the tool answered, each time. */
const told: Record<string, unknown>[] = [];

const who: Script = ({ newest, toolResults }) => {
  for (const { text } of toolResults) told.push(JSON.parse(text) as Record<string, unknown>);
  if (toolResults.length > 0) return { say: 'so I am' };
  return newest.includes('who am I')
    ? { tools: [{ name: 'mcp__plugin_postbell_postbell__get_my_session_id', input: {} }] }
    : undefined;
};

describeWithClaude(
  'a session under its ids',
  () => {
    it('[HOST-243, HOST-049, HOST-053, HOST-094, SES-049, SES-052] CC8: after /clear mail to either id reaches it once, is taken in through MCP, and is routed within a second', async () => {
      office = await openOffice();
      const alice = await office.stream('alice');
      await office.reachable('alice');
      alice.say('hello');
      await alice.waitResult(1, 20_000);
      const before = alice.sessionId();
      const clears = () => office.records().filter(({ hook }) => hook === 'session-start').length;
      const started = clears();
      alice.say('/clear');
      await expect.poll(clears, { timeout: 10_000, interval: 20 }).toBe(started + 1);
      await expect.poll(() => alice.sessionId() !== before, { timeout: 5_000, interval: 20 }).toBe(true);
      const after = alice.sessionId();
      office.inboxes.set(after, 'alice');
      for (const [index, id] of [after, before].entries()) {
        const began = Date.now();
        const sent = await office.sendExact(id, `to id ${index}`);
        expect(sent.native_delivery).toMatchObject({
          status: 'native_accepted',
          adapter_kind: 'claude-listener',
        });
        if (index === 0) expect(Date.now() - began).toBeLessThan(1_000);
        await expect
          .poll(async () => (await office.facts(sent)).kinds, { timeout: 20_000 })
          .toEqual(['attempt adapter_returned', 'host_accept notice', 'intake ingested', 'ack acknowledged']);
        await expect
          .poll(() => alice.events.filter(({ type }) => type === 'result').length, { timeout: 10_000 })
          .toBe(3 + index);
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        expect(alice.events.filter(({ type }) => type === 'result')).toHaveLength(3 + index);
        expect(alice.living().filter(isListener)).toHaveLength(1);
        expect(office.texts(after)).toContain(`to id ${index}`);
      }
    });

    it('[HOST-244, HOST-051, HOST-018] CC9: resumed it is itself, a fork is another, compacted it goes on; it knows its id each time', async () => {
      const said = (newest: string) => newest.includes('<summary>');
      office = await openOffice({
        script: (turn) =>
          said(turn.newest) ? { say: '<analysis>a</analysis>\n<summary>s</summary>' } : who(turn),
      });
      Object.assign(office.env, { POSTBELL_LISTENER: 'off' });
      const answers = async (session: typeof alice, nth: number) => {
        session.say('who am I');
        await session.waitResult(nth, 20_000);
        return told.pop() as Record<string, unknown>;
      };
      const alice = await office.stream('alice');
      const project = await office.reachable('alice');
      const id = alice.sessionId();
      expect(await answers(alice, 1)).toMatchObject({
        session_id: id,
        aliases: [],
        principal_id: 'alice',
        project,
        bell: 'none',
        generation: 1,
      });
      await office.send('alice', 'that waits');
      alice.say('/compact');
      await alice.waitResult(2, 20_000);
      expect(alice.sessionId()).toBe(id);
      expect(await answers(alice, 3)).toMatchObject({ session_id: id, aliases: [] });
      const compacted = office.turns(id).at(-1);
      expect(office.model.text(compacted as never)).toMatch(
        new RegExp(`this session is "${id}"[^]*1 message waiting for "alice"`),
      );
      await alice.end();
      const resumed = await office.stream('alice', '--resume', id);
      await office.reachable('alice');
      expect(await answers(resumed, 1)).toMatchObject({ session_id: id, aliases: [], generation: 2 });
      const fork = await office.stream('alice', '--resume', id, '--fork-session');
      await office.reachable('alice', 2);
      const forked = await answers(fork, 1);
      expect(forked).toMatchObject({ aliases: [], principal_id: 'alice', generation: 1 });
      expect(forked.session_id).not.toBe(id);
      fork.say('/clear');
      await expect.poll(() => fork.sessionId() !== forked.session_id, { timeout: 10_000 }).toBe(true);
      expect(await answers(fork, 3)).toMatchObject({
        session_id: fork.sessionId(),
        aliases: [forked.session_id],
      });
      // Nothing rings here; the message waits all the same.
      await expect(office.sendExact(id, 'PARENT-ONLY')).rejects.toThrow(/no_bell.*the message is kept/);
      resumed.say('hello');
      await resumed.waitResult(2, 20_000);
      fork.say('hello');
      await fork.waitResult(4, 20_000);
      const session = `waiting for the live session "${id}"`;
      expect(office.texts(id)).toContain(session);
      for (const one of [forked.session_id as string, fork.sessionId()])
        expect(office.texts(one)).not.toMatch(new RegExp(`${session}|PARENT-ONLY`));
      const { stdout } = await postbell(office.env, office.project, [
        'message',
        'discover',
        '--project',
        project,
      ]);
      const cards = (JSON.parse(stdout) as { cards: { session_id: string }[] }).cards;
      expect(new Set(cards.map(({ session_id }) => session_id))).toEqual(new Set([id, forked.session_id]));
    });

    it('[HOST-057] a call of a tool names neither session nor prompt', async () => {
      office = await openOffice({ script: who });
      const log = path.join(office.dir, 'calls.log');
      const tee = path.join(office.dir, 'tee.cjs');
      writeFileSync(log, '');
      writeFileSync(tee, teeOf(program, log));
      Object.assign(office.env, { POSTBELL_BIN: tee, POSTBELL_LISTENER: 'off' });
      const session = await office.stream('alice');
      session.say('who am I');
      await session.waitResult(1, 20_000);
      const calls = readFileSync(log, 'utf8').split('\n').filter(Boolean);
      const [call] = calls
        .map((line) => JSON.parse(line) as { method?: string; params?: { name: string; _meta: object } })
        .filter(({ method, params }) => method === 'tools/call' && params?.name === 'get_my_session_id');
      expect(Object.keys(call?.params?._meta ?? {}).filter((key) => /session|prompt/i.test(key))).toEqual([]);
      expect(JSON.stringify(call)).not.toContain(session.sessionId());
    });
  },
  bothButInCi,
);
