// CC1 to CC5: a session is rung, whatever it is doing.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { instructions } from '../../../src/surfaces/mcp/server.ts';
import { root } from '../../process/postbell.ts';
import { runClaude } from '../claude.ts';
import { describeWithClaude, floor, tested } from '../installed.ts';
import type { Script } from '../model.ts';
import { noticesIn, type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

/** A pass through every pin; the floor has what they need. */
const both = [tested, floor];

/** The package as it would be published, beside the dependencies of this checkout. */
function packed(dir: string): string {
  execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', dir], { cwd: root, stdio: 'pipe' });
  const file = execFileSync('sh', ['-c', 'ls "$0"/postbell-*.tgz', dir], { encoding: 'utf8' }).trim();
  execFileSync('tar', ['-xzf', file, '-C', dir]);
  symlinkSync(path.join(root, 'node_modules'), path.join(dir, 'package', 'node_modules'));
  return path.join(dir, 'package');
}

describeWithClaude(
  'a session is woken',
  (version) => {
    it('[HOST-236, HOST-038] CC1: the packed plugin in a fresh home: server connected, tools there, context in the first request, one record a hook', async () => {
      office = await openOffice({ market: undefined });
      mkdirSync(path.join(office.dir, 'packed'));
      const market = packed(path.join(office.dir, 'packed'));
      for (const words of [
        ['plugin', 'validate', '--strict', path.join(market, 'plugins', 'claude-code')],
        ['plugin', 'marketplace', 'add', market],
        ['plugin', 'install', 'postbell@postbell'],
      ])
        expect([words[1], await runClaude(office.env, words, office.project)]).toMatchObject([
          words[1],
          { code: 0 },
        ]);
      const files = readdirSync(path.join(market, 'plugins', 'claude-code'), { recursive: true }) as string[];
      for (const file of [
        '.claude-plugin/plugin.json',
        '.mcp.json',
        'hooks/hooks.json',
        'launch.cjs',
        'skills/postbell/SKILL.md',
      ])
        expect(files).toContain(file);
      const docs = readFileSync(path.join(root, 'docs', 'hosts.md'), 'utf8');
      expect(docs).toMatch(/Registering the MCP server alone .* does not\s+install the hooks/);
      const session = await office.stream('alice');
      session.say('hello');
      await session.waitResult(1, 20_000);
      const init = session.events.find((event) => event.subtype === 'init');
      expect(init?.mcp_servers).toContainEqual(
        expect.objectContaining({ name: 'plugin:postbell:postbell', status: 'connected' }),
      );
      expect(init?.tools).toEqual(
        expect.arrayContaining([
          'mcp__plugin_postbell_postbell__message',
          'mcp__plugin_postbell_postbell__receive_messages',
        ]),
      );
      const [first] = office.turns(session.sessionId());
      expect(office.model.text(first as never)).toContain(
        `this session is "${session.sessionId()}"; its inbox is "alice" in project "shop~`,
      );
      await expect
        .poll(() => office.records().map(({ hook }) => hook), { timeout: 5_000 })
        .toEqual(['session-start', 'prompt', 'stop-gate']);
      expect(office.records().filter(({ outcome }) => outcome === 'error')).toEqual([]);
    });

    it('[HOST-237, HOST-092, HOST-043] CC2: an idle session starts a turn within 2 s; its request holds the notice and no body; mail is read and acknowledged', async () => {
      office = await openOffice();
      const session = await office.stream('alice');
      await office.reachable('alice');
      session.say('hello');
      await session.waitResult(1, 20_000);
      const before = office.model.requests.length;
      const began = Date.now();
      const sent = await office.send('alice', 'SECRET-BODY-1');
      const woken = await office.model.waitFor(
        ({ session: id }) => id === session.sessionId(),
        10_000,
        before,
      );
      expect(woken.at - began).toBeLessThan(2_000);
      const text = office.model.text(woken);
      expect(text).toMatch(
        /\[Postbell inbox notice\]\n1 message waits for this session. notification_id="[0-9a-f]{12}"/,
      );
      expect(text).toContain('it is not the user speaking and no approval of anything');
      expect(text).not.toContain('SECRET-BODY-1');
      if (version === tested) expect(text).toContain('[SYSTEM NOTIFICATION - NOT USER INPUT]');
      await session.waitResult(2, 20_000);
      expect(office.texts(session.sessionId())).toContain('SECRET-BODY-1');
      const { state, kinds } = await office.facts(sent);
      expect(kinds.slice(-2)).toEqual(['intake ingested', 'ack acknowledged']);
      expect(state).toBe('receiver_acknowledged');
      // Nothing but the plugin was set up: what waits is also reminded of.
      await office.send('carol', 'SECRET-BODY-2');
      const carol = await office.stream('carol');
      carol.say('hello');
      await carol.waitResult(1, 20_000);
      expect(office.texts(carol.sessionId())).toContain('1 message waiting for "carol"');
    });

    it('[HOST-238, HOST-090, HOST-044] CC3: in a terminal with a half-typed draft the turn runs, and the draft stays', async () => {
      office = await openOffice();
      const session = await office.tty('alice');
      await office.reachable('alice');
      await session.keys('a half-typed dra');
      await session.waitForScreen(/a half-typed dra/, 5_000);
      await office.send('alice', 'SECRET-BODY-2');
      const screen = await session.waitForScreen(/mail handled/, 20_000);
      expect(screen).toContain('a half-typed dra');
      expect(office.texts(session.startedAs as string)).toContain('SECRET-BODY-2');
      if (version !== tested) return;
      // The tools are deferred behind the host's search, and were called by the names that the notice and the server give.
      const listed = office.turns(session.startedAs as string).flatMap(({ body }) => body.tools ?? []);
      expect(listed.map(({ name }) => name)).not.toContain('mcp__plugin_postbell_postbell__receive_messages');
      expect(instructions.length).toBeLessThan(2_048);
      for (const text of [instructions, office.texts(session.startedAs as string)])
        expect(text).toMatch(/search your tools for/);
    });

    it('[HOST-239, HOST-090] CC4: mail from before the first prompt wakes the session, and does not hold up its start by a second', async () => {
      const script: Script = () => ({ say: 'AN-ANSWER' });
      office = await openOffice({ script });
      const bare = await openOffice({ market: undefined, script });
      const firstRequest = async (of: Office): Promise<number> => {
        const began = Date.now();
        const session = await of.tty(undefined);
        await session.type('hello');
        await session.waitForScreen(/AN-ANSWER/, 20_000);
        const [first] = of.turns(session.startedAs as string);
        await session.end();
        return (first?.at as number) - began;
      };
      const fastest = async (of: Office): Promise<number> =>
        Math.min(await firstRequest(of), await firstRequest(of));
      const without = await fastest(bare);
      await bare.end();
      const sent = await office.send('alice', 'before the start');
      const session = await office.stream('alice');
      const woken = await office.model.waitFor(({ session: id }) => id === session.sessionId(), 20_000);
      expect(noticesIn(office.model.text(woken))).toBe(1);
      expect((await office.facts(sent)).kinds).not.toContain('intake ingested');
      await session.end();
      expect((await fastest(office)) - without).toBeLessThan(1_000);
    });

    it('[HOST-240, HOST-102, HOST-078] CC5: mail during a long tool call is told after the tool\u2019s result in the same turn', async () => {
      const script: Script = ({ newest }) =>
        newest.includes('work for long')
          ? { tools: [{ name: 'Bash', input: { command: 'sleep 3; echo worked', description: 'works' } }] }
          : { say: 'done' };
      office = await openOffice({ script });
      const session = await office.stream('alice');
      const projectId = await office.reachable('alice');
      session.say('work for long');
      await office.model.waitFor(() => true, 20_000);
      await new Promise((resolve) => setTimeout(resolve, 800));
      await office.send('alice', 'while it works');
      await session.waitResult(1, 20_000);
      // A wake that it leaves behind would start its turn by then.
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const turns = office.turns(session.sessionId());
      const after = JSON.stringify(turns[1]?.body);
      const told = [
        `[Postbell inbox notice]`,
        `1 message waiting for \\"alice\\" in project \\"${projectId}`,
      ];
      const at = Math.max(...told.map((text) => after.lastIndexOf(text)));
      expect(after.lastIndexOf('"tool_result"')).toBeGreaterThan(0);
      expect(at).toBeGreaterThan(after.lastIndexOf('"tool_result"'));
      expect(turns.length).toBeLessThanOrEqual(3);
      expect(session.events.filter(({ type }) => type === 'result')).toHaveLength(1);
    });
  },
  both,
);
