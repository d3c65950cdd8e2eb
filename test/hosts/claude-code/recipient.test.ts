// CC13 and CC15: what model and screen show of who a session is, and of a flag that was mistyped.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { postbell } from '../../process/postbell.ts';
import { streamSession, ttySession } from '../claude.ts';
import { bothButInCi, describeWithClaude } from '../installed.ts';
import { type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

/** The environment of a process that the plugin's launcher became, by its word. */
function environmentOf(pid: number, word: string): Record<string, string>[] {
  try {
    const [, entry = '', first] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    if (!entry.endsWith('launch.cjs') || first !== word) return [];
    const pairs = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
    const entries = pairs.map((pair) => [
      pair.slice(0, pair.indexOf('=')),
      pair.slice(pair.indexOf('=') + 1),
    ]);
    return [Object.fromEntries(entries) as Record<string, string>];
  } catch {
    return [];
  }
}

/** One session in a terminal, with one prompt: what its first request said of Postbell, and what its screen showed. */
async function look(more: Record<string, string>, ...args: string[]) {
  const session = await ttySession({ ...office.env, ...more }, office.project, args);
  office.atEnd(session.end);
  await session.waitForScreen(/❯/, 20_000);
  await session.type('hello');
  await session.waitForScreen(/AN-ANSWER/, 20_000);
  const [first] = office.turns(session.startedAs as string);
  const screen = await session.screen();
  await session.end();
  const context = office.model.text(first as never);
  return {
    id: session.startedAs as string,
    inbox: /its inbox is "([^"]*)"/.exec(context)?.[1],
    waiting: [...context.matchAll(/waiting for "([^"]*)"/g)].map(([, name]) => name),
    refused: /POSTBELL_RECIPIENT ignored: [^\n]*/.exec(context)?.[0],
    screen,
  };
}

describeWithClaude(
  'who a session is',
  () => {
    it('[HOST-248] CC13: a recipient that is valid, refused, empty, or not set, with and without hosts/claude.json', async () => {
      office = await openOffice({ script: () => ({ say: 'AN-ANSWER' }) });
      Object.assign(office.env, { POSTBELL_LISTENER: 'off' });
      await office.send('alice', 'for alice');
      await office.send('writer', 'for writer');
      const unset = await look({});
      expect(unset).toMatchObject({ inbox: `claude-session-${unset.id}`, waiting: [], refused: undefined });
      const valid = await look({ POSTBELL_RECIPIENT: 'alice' });
      expect(valid).toMatchObject({ inbox: 'alice', refused: undefined });
      expect(new Set(valid.waiting)).toEqual(new Set(['alice']));
      expect(valid.screen).toContain('Postbell: 1 message waits');

      const setup = await postbell(office.env, office.project, [
        'agent',
        'setup',
        'claude',
        '--principal',
        'writer',
      ]);
      expect(setup.code).toBe(0);
      const configured = await look({});
      expect(configured.inbox).toBe('writer');
      expect(new Set(configured.waiting)).toEqual(new Set(['writer']));
      const empty = await look({ POSTBELL_RECIPIENT: '' });
      expect(empty).toMatchObject({ inbox: `claude-session-${empty.id}`, waiting: [], refused: undefined });
      const refused = await look({ POSTBELL_RECIPIENT: '/root' });
      expect(refused).toMatchObject({
        inbox: `claude-session-${refused.id}`,
        waiting: [],
        refused: expect.stringContaining('looks like a file path'),
      });
      expect(refused.screen).toContain('Postbell: POSTBELL_RECIPIENT ignored: ');
    });

    it('[HOST-039] the server and the hooks see each variable as it was at launch: set, empty, or not there', async () => {
      office = await openOffice({ script: () => ({ say: 'AN-ANSWER' }) });
      const names = [
        'POSTBELL_RECIPIENT',
        'POSTBELL_SESSION',
        'POSTBELL_PROGRESS_INTERVAL',
        'POSTBELL_CHANNELS',
      ];
      for (const value of ['x1', '', undefined]) {
        const given: Record<string, string> = {};
        if (value !== undefined) for (const name of names) given[name] = value;
        // Channels on would leave the session without a listener to look at.
        if (value === 'x1') given.POSTBELL_CHANNELS = '0';
        const session = streamSession({ ...office.env, ...given }, office.project);
        office.atEnd(session.end);
        const seen = (word: string) => session.living().flatMap((pid) => environmentOf(pid, word));
        for (const word of ['mcp', 'wait']) {
          await expect.poll(() => seen(word).length, { timeout: 10_000 }).toBeGreaterThan(0);
          const [environment = {}] = seen(word);
          for (const name of names) {
            // The one that .mcp.json declares: empty means off.
            const declared = name === 'POSTBELL_CHANNELS' && word === 'mcp';
            const expected = given[name] ?? (declared ? '' : undefined);
            expect([word, name, environment[name]]).toEqual([word, name, expected]);
          }
        }
        await session.end();
      }
    });
    it('[HOST-250] CC15: a mistyped channel flag is said once, where a channel was set up', async () => {
      office = await openOffice({ script: () => ({ say: 'AN-ANSWER' }) });
      Object.assign(office.env, { POSTBELL_LISTENER: 'off' });
      // The dash that a word processor makes of two hyphens; the host takes it for a prompt.
      const mistyped = '\u2014dangerously-load-development-channels';
      const warned = (screen: string) => screen.match(/the flag for channels is mistyped/g)?.length ?? 0;
      const session = async () => {
        const started = await ttySession(office.env, office.project, [mistyped, 'server:postbell-channel']);
        office.atEnd(started.end);
        await started.waitForScreen(/AN-ANSWER/, 20_000);
        const screen = await started.screen();
        await started.end();
        return screen;
      };
      expect(warned(await session())).toBe(0);
      const directory = path.join(office.env.HOME as string, '.local', 'state', 'postbell', 'hosts');
      await postbell(office.env, office.project, ['agent', 'setup', 'claude', '--principal', 'writer']);
      expect(warned(await session())).toBe(1);
      writeFileSync(path.join(directory, 'claude.json'), 'garbage');
      expect(warned(await session())).toBe(1);
    });
  },
  bothButInCi,
);
