// CC10 and CC11: one listener, that renews itself and leaves nothing behind.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { program, root } from '../../process/postbell.ts';
import { bothButInCi, describeWithClaude } from '../installed.ts';
import { installPlugin, isListener, marketWith, type Office, openOffice, renewing } from '../office.ts';

let office: Office;
afterEach(() => office.end());

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return 'gone';
  }
};

describeWithClaude('the listener', () => {
  it('[HOST-245, HOST-095, HOST-096] CC10: renews itself at 3 s of 30, is armed again, and a later message wakes; no more than 20 turns in a minute', async () => {
    office = await openOffice({ market: undefined });
    Object.assign(office.env, { POSTBELL_BIN: program });
    const market = marketWith(path.join(office.dir, 'market'), renewing);
    await installPlugin(office.env, market, office.project);
    const session = await office.stream('alice');
    await office.reachable('alice');
    const began = Date.now();
    const renewed = await office.model.waitFor(({ session: id }) => id === session.sessionId(), 10_000);
    expect(office.model.text(renewed)).toContain('[Postbell listener renewal]');
    expect(office.model.text(renewed)).not.toContain('waits for this session');
    expect(office.model.text(renewed)).toContain('End this turn at once without any action');
    const docs = readFileSync(path.join(root, 'docs', 'hosts.md'), 'utf8');
    expect(docs).toMatch(/costs a model turn and\s+depends on the\s+host following it/);
    await session.waitResult(3, 20_000);
    await office.send('alice', 'SECRET-AFTER-RENEWAL');
    await expect
      .poll(() => office.texts(session.sessionId()).includes('SECRET-AFTER-RENEWAL'), { timeout: 5_000 })
      .toBe(true);
    await pause(Math.max(0, 60_000 - (Date.now() - began)));
    const turns = session.events.filter(({ type }) => type === 'result').length;
    expect(turns).toBeGreaterThan(10);
    expect(turns).toBeLessThanOrEqual(20);
    expect(session.living().filter(isListener)).toHaveLength(1);
  });
});

describeWithClaude(
  'the end of a host',
  () => {
    it('[HOST-246, HOST-093, HOST-127] CC11: after five turns there is one listener; SIGKILL, SIGTERM, a closed terminal and /exit leave no process, and nobody is live', async () => {
      office = await openOffice();
      const ends = {
        SIGKILL: (pid: number) => process.kill(pid, 'SIGKILL'),
        SIGTERM: (pid: number) => process.kill(pid, 'SIGTERM'),
        terminal: undefined,
        exit: undefined,
      };
      for (const [how, end] of Object.entries(ends)) {
        const session = await office.tty(how);
        await office.reachable(how);
        for (let turn = 1; turn <= 5; turn += 1) {
          const before = office.turns(session.startedAs as string).length;
          await session.type(`turn ${turn}`);
          await expect
            .poll(() => office.turns(session.startedAs as string).length, { timeout: 10_000 })
            .toBeGreaterThan(before);
          await session.waitForScreen(/❯/, 5_000);
          await pause(700);
        }
        await expect
          .poll(() => [how, session.living().filter(isListener).length], { timeout: 5_000 })
          .toEqual([how, 1]);
        if (how === 'exit') {
          for (const pid of session.living().filter(isListener)) process.kill(pid, 'SIGKILL');
          await session.type('one turn more');
          await expect.poll(() => session.living().filter(isListener).length, { timeout: 10_000 }).toBe(1);
        }
        const living = session.living();
        if (end !== undefined) end(session.pid);
        else if (how === 'exit') await session.type('/exit');
        else void session.end();
        await expect.poll(() => session.living().includes(session.pid), { timeout: 10_000 }).toBe(false);
        const left = () => living.filter((pid) => session.living().includes(pid)).map(commandOf);
        await expect.poll(() => [how, ...left()], { timeout: 5_000 }).toEqual([how]);
        await office.reachable(how, 0);
        expect((await office.send(how, 'is anybody there')).recipient_presence).toBe('gone');
        await session.end();
      }
    });
  },
  bothButInCi,
);
