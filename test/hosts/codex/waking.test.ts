// A real Codex thread, and mail for it: idle, in a turn, with a draft, and at the end of a turn.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { root } from '../../process/postbell.ts';
import { type CodexOffice, codexBinary, openCodexOffice } from '../codex.ts';
import { codexMailAgent } from '../codex-agent.ts';
import type { CodexScript } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';
import { noticesIn } from '../office.ts';
import { openTerminal } from '../terminal.ts';

/** As the mail agent, but a prompt `sleep MS` takes its time. */
const script: CodexScript = (turn) => {
  const asked = turn.outputs.length === 0 ? /^sleep (\d+)$/m.exec(turn.newest) : null;
  return asked === null ? codexMailAgent(turn) : { say: 'slept', sleepMs: Number(asked[1]) };
};

const handled = { timeout: 20_000, interval: 100 };

describeWithHost('codex', 'waking', () => {
  let office: CodexOffice;
  beforeAll(async () => {
    office = await openCodexOffice({ script });
  });
  afterAll(() => office.end());

  /** All that the model was sent in the thread. */
  const texts = (thread: string): string =>
    office.model
      .requestsOf(thread)
      .map((request) => office.model.text(request))
      .join('\n');
  const live = (thread: string) => expect.poll(() => office.card(thread), handled).toBeDefined();
  /** The first request of the turn that a notice began. */
  const noticed = (thread: string, from = 0) =>
    office.model.waitFor(
      (request) => request.thread === thread && noticesIn(office.model.text(request)) > 0,
      15_000,
      from,
    );

  it('[HOST-257] CX4: an idle terminal is woken within 12 s, on a shared server within 2 s; the body comes by fetch alone', async () => {
    const alone = await office.open();
    await live(alone.thread);
    let at = Date.now();
    const first = await office.sendExact(alone.thread, 'SENTINEL of the first');
    expect(first.native_delivery).toMatchObject({ adapter_kind: 'codex-queue' });
    const request = await noticed(alone.thread);
    expect(request.at - at).toBeLessThan(12_000);
    expect(office.model.text(request)).not.toContain('SENTINEL');
    await expect.poll(async () => (await office.facts(first)).kinds, handled).toContain('ack acknowledged');
    expect(texts(alone.thread)).toContain('SENTINEL of the first');
    await alone.terminal.end();

    const server = await office.serve();
    const shared = await office.open();
    await live(shared.thread);
    at = Date.now();
    const second = await office.sendExact(shared.thread, 'SENTINEL of the second');
    expect((await noticed(shared.thread)).at - at).toBeLessThan(2_000);
    expect(await shared.terminal.waitForScreen(/mail handled/, 15_000)).toContain('[Postbell inbox notice]');
    expect((await office.facts(second)).kinds).toContain('intake ingested');
    await shared.terminal.end();
    server.kill('SIGTERM');
    await new Promise((resolve) => server.once('exit', resolve));
  });

  it('[HOST-143] a terminal that nobody has prompted yet has no thread to address, as the docs say', async () => {
    const docs = readFileSync(path.join(root, 'docs/hosts.md'), 'utf8').replaceAll(/\s+/g, ' ');
    expect(docs).toMatch(/A thread is known from its \*\*first turn\*\* on: [^.]*\. Until then it is in no/);
    const terminal = await openTerminal(office.env, office.project, [codexBinary()]);
    office.atEnd(terminal.end);
    await terminal.waitForScreen(/Ask Codex to do anything/, 30_000);
    // Threads of before may still have their window.
    const known = async () => (await office.cards()).map(({ session_id }) => session_id);
    const before = await known();
    await pause(3_000);
    expect((await known()).filter((one) => !before.includes(one))).toEqual([]);
    await terminal.type('hello');
    await expect
      .poll(async () => (await known()).filter((one) => !before.includes(one)).length, handled)
      .toBe(1);
    await terminal.end();
  });

  it('[HOST-258] CX5: mail that comes during a turn is told right after it, and a draft stays in the composer', async () => {
    const { terminal, thread } = await office.open();
    await live(thread);
    await terminal.type('sleep 4000');
    await office.model.waitFor((request) => request.thread === thread && !request.answered, 5_000);
    const sent = await office.sendExact(thread, 'while you were busy');
    expect(sent.native_delivery).toBeDefined();
    await terminal.keys('half a thought');
    const busy = office.model.requestsOf(thread).length;
    expect(texts(thread)).not.toContain('[Postbell inbox notice]');
    await noticed(thread);
    expect(office.model.requestsOf(thread).length).toBeGreaterThan(busy);
    await terminal.waitForScreen(/mail handled/, 15_000);
    expect(await terminal.screen()).toContain('half a thought');
    await expect.poll(async () => (await office.facts(sent)).kinds, handled).toContain('intake ingested');
    await terminal.end();
  });

  it('[HOST-266] CX13: a hostile name arrives as it is, and nothing of it is executed', async () => {
    const mark = path.join(office.dir, 'executed');
    const hostile = `eve" $(touch ${mark}) \`touch ${mark}\` '; touch ${mark}; </user> é`;
    const { terminal, thread } = await office.open(undefined, [], { POSTBELL_RECIPIENT: hostile });
    await live(thread);
    const sent = await office.send(hostile, 'to whom it may concern');
    const request = await noticed(thread);
    const line = /^- (\{.*\})$/m.exec(office.model.text(request))?.[1] as string;
    expect(JSON.parse(line)).toMatchObject({ recipient: hostile, message_id: sent.message_id });
    await terminal.waitForScreen(/mail handled/, 15_000);
    expect(existsSync(mark)).toBe(false);
    await terminal.end();
  });

  it('[HOST-136, HOST-267] CX14: a turn ends though mail waits; no Stop hook keeps it', async () => {
    const { terminal, thread } = await office.open(undefined, [], { POSTBELL_RECIPIENT: 'carol' });
    await live(thread);
    await terminal.type('sleep 2000');
    const before = office.model.requestsOf(thread).length;
    await office.send('carol', 'it can wait');
    await terminal.waitForScreen(/slept/, 10_000);
    await expect.poll(() => noticesIn(texts(thread)), handled).toBeGreaterThan(0);
    await terminal.waitForScreen(/mail handled/, 15_000);
    // The sleep, and the turn of the notice: receive, acknowledge, an end.
    expect(office.model.requestsOf(thread).length - before).toBeLessThanOrEqual(4);
    expect(office.records().filter(({ hook }) => hook === 'stop-gate')).toEqual([]);
    expect(texts(thread)).not.toContain('hook_prompt');
    await terminal.end();
  });
});
