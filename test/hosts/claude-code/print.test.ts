// CC12 and CC18: print mode, and a host that allows nothing.

import { afterEach, expect, it } from 'vitest';
import { runClaude } from '../claude.ts';
import { bothButInCi, describeWithClaude } from '../installed.ts';
import type { Script } from '../model.ts';
import { type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

describeWithClaude(
  'print mode',
  () => {
    it('[HOST-247, HOST-098, HOST-099] CC12: with mail waiting takes no 2 s more than without the plugin; a stream session ends within 5 s of its input', async () => {
      office = await openOffice({ script: () => ({ say: 'hi' }) });
      const bare = await openOffice({ market: undefined, script: () => ({ say: 'hi' }) });
      await office.send('alice', 'one that waits');
      const timed = async (of: Office): Promise<number> => {
        const began = Date.now();
        const run = await runClaude({ ...of.env, POSTBELL_RECIPIENT: 'alice' }, ['-p', 'hi'], of.project);
        expect([run.code, run.stdout.trim()]).toEqual([0, 'hi']);
        return Date.now() - began;
      };
      await timed(bare);
      const without = Math.min(await timed(bare), await timed(bare));
      await bare.end();
      expect(Math.min(await timed(office), await timed(office)) - without).toBeLessThan(2_000);

      const session = await office.stream('alice');
      session.say('hello');
      await session.waitResult(1, 20_000);
      const began = Date.now();
      session.closeInput();
      expect(await session.exited).toEqual({ code: 0, signal: null });
      expect(Date.now() - began).toBeLessThan(5_000);
      await expect.poll(() => session.living(), { timeout: 5_000 }).toEqual([]);
    });

    it('[HOST-253, HOST-042] CC18: where the tools are not allowed the model is told so, and the mail still waits', async () => {
      const script: Script = ({ newest, toolResults }) => {
        if (toolResults.length > 0) return { say: `told: ${toolResults[0]?.text.slice(0, 200)}` };
        return newest.includes('read your mail')
          ? { tools: [{ name: 'mcp__plugin_postbell_postbell__receive_messages', input: {} }] }
          : { say: 'no' };
      };
      office = await openOffice({ untrusted: true, script });
      const sent = await office.send('alice', 'SECRET-DENIED');
      const run = await runClaude(
        { ...office.env, POSTBELL_RECIPIENT: 'alice' },
        ['-p', 'read your mail'],
        office.project,
      );
      expect(run.code).toBe(0);
      const texts = office.model.requests.map((request) => office.model.text(request)).join('\n');
      expect(texts).toMatch(/permission|denied|haven't granted|requested permissions/i);
      expect(texts).not.toContain('SECRET-DENIED');
      const { state, kinds } = await office.facts(sent);
      expect(kinds.filter((kind) => kind.startsWith('intake'))).toEqual([]);
      expect(state).toBe('receiver_stored');
      const session = await office.stream('alice');
      const before = office.model.requests.length;
      await office.model.waitFor(({ session: id }) => id === session.sessionId(), 20_000, before);
      await session.waitResult(1, 20_000);
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      // Rung once, and not again before the reservation ends.
      expect(session.events.filter(({ type }) => type === 'result')).toHaveLength(1);
      expect((await office.facts(sent)).kinds).not.toContain('intake ingested');
    });
  },
  bothButInCi,
);
