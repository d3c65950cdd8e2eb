// When a real Codex thread begins and ends, and what its mail does meanwhile.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CodexOffice, codexBinary, openCodexOffice } from '../codex.ts';
import { codexMailAgent } from '../codex-agent.ts';
import type { CodexScript } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';
import { noticesIn } from '../office.ts';
import { openTerminal } from '../terminal.ts';
import { result, says, untilConnected } from './server.ts';

const handled = { timeout: 20_000, interval: 100 };

/** The next turn that a notice begins goes on and on. */
let isHeld = false;

const script: CodexScript = (turn) => {
  if (isHeld && turn.newest.includes('[Postbell inbox notice]')) return { say: 'late', sleepMs: 600_000 };
  // The notice of the killed turn still stands before it.
  if (turn.newest.includes('hello again') && turn.outputs.length === 0) return { say: 'hello' };
  const asked = turn.outputs.length === 0 ? /^sleep (\d+)$/m.exec(turn.newest) : null;
  return asked === null ? codexMailAgent(turn) : { say: 'slept', sleepMs: Number(asked[1]) };
};

const noticeIds = (text: string): string[] =>
  [...text.matchAll(/notification_id="([0-9a-f]+)"/g)].map(([, id]) => id as string);

describeWithHost('codex', 'life of a thread', () => {
  let office: CodexOffice;
  beforeAll(async () => {
    office = await openCodexOffice({ script });
  });
  afterAll(() => office.end());
  const texts = (thread: string): string =>
    office.model
      .requestsOf(thread)
      .map((request) => office.model.text(request))
      .join('\n');

  it('[HOST-035, HOST-172, HOST-263] CX10: `codex exec` is deaf: nothing is queued for it or marked read, and the next thread of the name finds the mail', async () => {
    const erin = { POSTBELL_RECIPIENT: 'erin' };
    const running = office.exec('sleep 4000', [], erin);
    await expect.poll(async () => (await office.cards())[0]?.bell_state.state, handled).toBe('deaf');
    const [card] = await office.cards();
    expect(card?.bell).toBe('none');
    const sent = await office.send('erin', 'for whoever comes');
    expect(sent.recipient_presence).toBe('deaf');
    const { code, thread } = await running;
    expect([code, thread]).toEqual([0, card?.session_id]);
    expect((await office.facts(sent)).kinds).toEqual([]);
    expect(noticesIn(texts(thread))).toBe(0);
    // In a terminal the same thread has its bell.
    const terminal = await openTerminal({ ...office.env, ...erin }, office.project, [
      codexBinary(),
      'resume',
      thread,
    ]);
    office.atEnd(terminal.end);
    await terminal.waitForScreen(/Ask Codex to do anything/, 30_000);
    await terminal.type('what waits?');
    await expect.poll(() => office.card(thread), handled).toMatchObject({ bell: 'codex-queue' });
    await expect.poll(() => texts(thread), handled).toContain('1 message waiting for "erin"');
    await terminal.waitForScreen(/mail handled/, 20_000);
    expect((await office.facts(sent)).kinds).toContain('intake ingested');
    await terminal.end();
  });

  it('[HOST-173] a thread that keeps nothing on disk is known and deaf: nothing is queued for it, by `codex exec` and on an app-server', async () => {
    const deaf = { bell: 'none', bell_state: { state: 'deaf' } };
    const running = office.exec('sleep 3000', ['--ephemeral']);
    await expect.poll(async () => (await office.cards())[0], handled).toMatchObject(deaf);
    await running;
    const child = await office.serve();
    const server = await untilConnected(
      path.join(office.codexHome, 'app-server-control/app-server-control.sock'),
    );
    office.atEnd(() => server.close());
    const started = async (ephemeral: boolean): Promise<string> => {
      const { thread } = await result(server, 'thread/start', { cwd: office.project, ephemeral });
      const { id } = thread as { id: string };
      await result(server, 'turn/start', { threadId: id, input: says('hello') });
      await expect.poll(() => office.card(id), handled).toBeDefined();
      return id;
    };
    const kept = await started(false);
    expect(await office.card(kept)).toMatchObject({ bell: 'codex-queue' });
    const thread = await started(true);
    expect(await office.card(thread)).toMatchObject(deaf);
    await expect(office.sendExact(thread, 'your hooks tell you')).rejects.toThrow(/no_bell/);
    // As it stays when its server has looked whether anybody rings the thread.
    await pause(7_000);
    expect(await office.card(thread)).toMatchObject(deaf);
    expect(noticesIn(texts(thread))).toBe(0);
    server.close();
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  });

  it('[HOST-033, HOST-171] C13: a Codex that was killed in the woken turn leaves no process, is not live, and its mail waits; a new notice rings for it', async () => {
    const { thread, terminal } = await office.open();
    await expect.poll(() => office.card(thread), handled).toBeDefined();
    const living = terminal.living();
    expect(living.length).toBeGreaterThan(1);
    isHeld = true;
    const sent = await office.sendExact(thread, 'you will not read this');
    const woken = await office.model.waitFor(
      (request) => request.thread === thread && noticesIn(office.model.text(request)) > 0,
      20_000,
    );
    const [lost] = noticeIds(office.model.text(woken));
    process.kill(terminal.pid, 'SIGKILL');
    isHeld = false;
    await expect.poll(() => office.card(thread), { timeout: 10_000, interval: 200 }).toBeUndefined();
    const log = path.join(office.env.HOME as string, '.local/state/postbell/codex-companion.log');
    await expect
      .poll(() => readFileSync(log, 'utf8'))
      .toContain(`${thread} its Codex ended without a SessionEnd`);
    const { kinds, state } = await office.facts(sent);
    expect(kinds).not.toContain('intake ingested');
    expect(state).not.toBe('receiver_acknowledged');
    await terminal.end();
    const again = await openTerminal(office.env, office.project, [codexBinary(), 'resume', thread]);
    office.atEnd(again.end);
    await again.waitForScreen(/Ask Codex to do anything/, 30_000);
    await again.type('hello again');
    await again.waitForScreen(/mail handled/, 60_000);
    expect(new Set(noticeIds(texts(thread))).size).toBe(2);
    expect(noticeIds(texts(thread))).toContain(lost);
    expect((await office.facts(sent)).kinds).toContain('intake ingested');
    await again.end();
  });
});
