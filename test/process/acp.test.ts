// `postbell host acp` over a scripted agent: how it starts, how it rings, and what becomes of what it rings for.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { until } from './home.ts';
import { answer, factsOf, postbell, root } from './postbell.ts';
import { typed } from './typed.ts';

let acp: AcpHome;
beforeEach(async () => {
  acp = await acpHome();
});
afterEach(() => acp.home.end());

const data = (): string => acp.home.env.POSTBELL_HOME as string;
function rows(sql: string): Record<string, unknown>[] {
  const store = new BetterSqlite3(path.join(data(), 'postbell.db'), { readonly: true });
  try {
    return store.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    store.close();
  }
}
const given = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(path.join(acp.home.dir, 'agent', name), 'utf8')) as Record<string, unknown>;
const facts = (message_id: unknown, recipient = 'builder') =>
  factsOf(acp.home.env, acp.home.project, {
    project: acp.project,
    recipient,
    message_id: message_id as string,
  });
const texts = (): string[] => acp.log('prompt').map(({ text }) => text as string);
/** A send that may be refused, as it was answered. */
async function trySend(over: object): Promise<{ code: number | null; said: string }> {
  const letter = { project: acp.project, sender: 'alice', payload: 'hello', idempotency_key: 'try', ...over };
  const [words, input] = typed('send', letter);
  const { code, stderr } = await postbell(acp.home.env, acp.home.project, words, input);
  return { code, said: stderr };
}
const acknowledged = (msg_id: string) => {
  const receipts = JSON.stringify([{ sender: 'local', msg_id }]);
  const words = [
    'inbox',
    'acknowledge',
    '--project',
    acp.project,
    '--recipient',
    'builder',
    '--receipts-stdin',
  ];
  return answer(acp.home.env, acp.home.project, words, receipts);
};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('the ACP runner', () => {
  it('[HOST-270] AC1: the agent is rung, reads, answers and acknowledges by its tools; it ends cleanly', async () => {
    const runner = await acp.running();
    const sent = await acp.toSession(runner.session, { payload: 'SENTINEL' });
    expect(sent.native_delivery).toMatchObject({ status: 'native_accepted', adapter_kind: 'acp' });
    await acp.happened('stop');
    const { state, receipts } = await facts(sent.message_id, runner.session);
    expect(state).toBe('receiver_acknowledged');
    expect(receipts.map(({ receipt_kind }) => receipt_kind).sort()).toEqual([
      'ack',
      'attempt',
      'host_accept',
      'intake',
    ]);
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toMatch(/^\[Postbell inbox notice\]\n1 message waits/);
    expect(texts()[0]).not.toContain('SENTINEL');
    const inbox = ['inbox', 'receive', '--project', acp.project, '--recipient', 'alice'];
    const { messages } = await answer(acp.home.env, acp.home.project, inbox);
    expect(messages).toMatchObject([
      { sender: 'builder', reply_to: sent.message_id, payload: 'done by the agent' },
    ]);
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    await until('it is not live', async () => (await acp.cards()).length === 0);
  });

  it('[HOST-203] answers as this session by the tools of our server; what the agent prints is no receipt', async () => {
    const runner = await acp.running();
    const { mcpServers } = given('session') as { mcpServers: { args: string[] }[] };
    expect(mcpServers.map(({ args }) => args.slice(1, 5))).toEqual([
      ['mcp', '--session', runner.session, '--no-register'],
    ]);
    const sent = await acp.send();
    await acp.happened('stop');
    expect(acp.log('tool').map(({ name }) => name)).toEqual([
      'receive_messages',
      'get_my_session_id',
      'message',
      'acknowledge_messages',
    ]);
    const words = ['inbox', 'receive', '--project', acp.project, '--recipient', 'alice'];
    const { messages } = await answer(acp.home.env, acp.home.project, words);
    expect(messages).toMatchObject([
      { sender: 'builder', reply_to: sent.message_id, provenance: { session: runner.session } },
    ]);
    acp.turn('print');
    const unread = await acp.send();
    await acp.happened('stop', 2);
    const { receipts } = await facts(unread.message_id);
    expect(receipts.map(({ receipt_kind }) => receipt_kind)).not.toContain('intake');
    expect(acp.log('tool')).toHaveLength(4);
  });

  it('[SES-031] has another session id at each start', async () => {
    const first = await acp.running();
    first.child.kill('SIGTERM');
    await first.exited;
    const second = await acp.running();
    expect(second.session).not.toBe(first.session);
    expect(await acp.cards()).toMatchObject([{ session_id: second.session, generation: 1 }]);
  });

  it('shows what kind of host it is, and whose mail it gets', async () => {
    acp.configure({ work_summary: 'the parser' });
    const runner = await acp.running();
    const card = { session_id: runner.session, principal_id: 'builder', bell: 'acp', active: true };
    expect(await acp.cards()).toMatchObject([{ ...card, host_kind: 'other', work_summary: 'the parser' }]);
    runner.child.kill('SIGTERM');
    await runner.exited;
    acp.configure({ host: 'gemini' });
    await acp.running({ POSTBELL_RECIPIENT: 'declared' });
    expect(await acp.cards()).toMatchObject([{ host_kind: 'gemini', principal_id: 'declared' }]);
  });

  it('[HOST-217] has a session that cannot be named as the one that mail is meant for', async () => {
    const { session } = await acp.running();
    const { code, said } = await trySend({ recipient: 'builder', intended_session: session });
    expect([code, said]).toEqual([1, expect.stringMatching(/^postbell: session_not_nameable: .*\bother\b/)]);
    expect(rows(`SELECT message_id FROM message WHERE sender = 'alice'`)).toEqual([]);
  });

  it('leaves nothing in the data directory but what every session leaves', async () => {
    const runner = await acp.running();
    runner.child.kill('SIGTERM');
    await runner.exited;
    const left = readdirSync(path.join(data(), 'runtime')).filter((name) => name.startsWith('tools-'));
    expect(left).toEqual([]);
  });
});

describe('an ACP agent that is slow or busy', () => {
  it('[HOST-206] silent for ten seconds is a time-out, and one late acceptance; updates beside the prompt are no answer', async () => {
    const { session } = await acp.running();
    acp.turn('beside');
    const { code, said } = await trySend({ recipient: session, target_kind: 'session' });
    expect([code, said]).toEqual([1, expect.stringContaining('host_outcome_timeout')]);
    const [{ message_id } = {}] = rows("SELECT message_id FROM message WHERE sender = 'alice'");
    const kinds = async () => (await facts(message_id, session)).receipts.map((one) => one.receipt_kind);
    expect(await kinds()).toEqual(['attempt']);
    expect(rows('SELECT state FROM attempt')).toEqual([{ state: 'adapter_failed' }]);
    acp.go();
    await acp.happened('stop');
    await until('it is accepted late', () => rows('SELECT 1 FROM host_accept').length === 1);
    await pause(500);
    expect([rows('SELECT 1 FROM host_accept').length, rows('SELECT 1 FROM attempt').length]).toEqual([1, 1]);
    expect(texts()).toHaveLength(1);
    expect([(await facts(message_id, session)).state, await kinds()]).toEqual([
      'host_queued',
      ['attempt', 'host_accept'],
    ]);
  });

  it('[HOST-001] a prompt that is taken late is no word of a message that came after it', async () => {
    const { session } = await acp.running();
    acp.turn('silent');
    await trySend({ recipient: session, target_kind: 'session' });
    const of = { recipient: session, target_kind: 'session', idempotency_key: 'later' };
    let answered = false;
    const later = trySend(of).finally(() => {
      answered = true;
    });
    await until('it is handed over', () => rows('SELECT 1 FROM attempt').length === 2);
    acp.turn('hold');
    acp.go();
    await until('a second prompt, or an answer', () => answered || texts().length === 2);
    expect(texts()).toHaveLength(2);
    expect((await later).code).toBe(0);
  });

  it('[HOST-207, HOST-271] AC2: in a turn three messages wait in preparing, and one prompt after it tells of all', async () => {
    const { session } = await acp.running();
    acp.turn('hold');
    const first = await acp.send();
    await acp.happened('prompt');
    await acknowledged(first.message_id as string);
    const two = [await acp.send(), await acp.send()];
    const newest = (): unknown => rows('SELECT state FROM reservation ORDER BY rowid DESC LIMIT 1')[0]?.state;
    await until('a notice waits', () => newest() === 'preparing');
    const states = await Promise.all(two.map(async ({ message_id }) => (await facts(message_id)).state));
    expect([states, texts().length]).toEqual([['receiver_stored', 'receiver_stored'], 1]);
    const exact = await trySend({ recipient: session, target_kind: 'session' });
    expect([exact.code, exact.said]).toEqual([1, expect.stringContaining('host_outcome_timeout')]);
    expect(texts()).toHaveLength(1);
    acp.turn('print');
    acp.go();
    await acp.happened('prompt', 2);
    expect(texts()[1]).toMatch(/^\[Postbell inbox notice\]\n3 messages wait/);
    const late = `SELECT 1 FROM host_accept JOIN delivery USING (delivery_id) WHERE recipient = '${session}'`;
    await until('the late one is accepted', () => rows(late).length === 1);
    await pause(2_500);
    expect(texts()).toHaveLength(2);
    expect(acp.log('cancelled')).toEqual([]);
  });

  it('[HOST-208] ends a turn with another word than its end: it is kept with the attempt, and no receipt changes', async () => {
    const { session } = await acp.running();
    const reasons = ['refusal', 'max_tokens', 'max_turn_requests', 'cancelled', 'print'];
    for (const [nth, reason] of reasons.entries()) {
      acp.turn(reason);
      const { message_id } = await acp.toSession(session);
      await acp.happened('stop', nth + 1);
      const noted = `SELECT stop_reason FROM attempt JOIN delivery USING (delivery_id) WHERE message_id = '${String(message_id)}'`;
      const expected = reason === 'print' ? null : reason;
      await until(reason, () => rows(noted)[0]?.stop_reason === expected);
      const { state, receipts } = await facts(message_id, session);
      expect(state).toBe('host_queued');
      expect(receipts.map(({ receipt_kind }) => receipt_kind)).toEqual(['attempt', 'host_accept']);
    }
  });

  it('[HOST-211] says what nobody knows: it is noted and ignored, a malformed line ends nothing', async () => {
    const runner = await acp.running();
    acp.turn('strange');
    await acp.send();
    await acp.happened('stop');
    acp.turn('read');
    const { message_id } = await acp.toSession(runner.session);
    await acp.happened('stop', 2);
    expect((await facts(message_id, runner.session)).state).toBe('receiver_acknowledged');
    expect(runner.stderr()).toContain('postbell: the agent sent an update of an unknown kind, "hologram"\n');
    expect(runner.child.exitCode).toBeNull();
  });
});

describe('the documents', () => {
  const hosts = readFileSync(path.join(root, 'docs', 'hosts.md'), 'utf8');
  const section = /^## ACP agents$([\s\S]*?)(?=^## )/m.exec(`${hosts}\n## `)?.[1] ?? '';

  it('[HOST-201] call the runner experimental and name the agents that were tried, as it starts each command whole', async () => {
    const tried = ['gemini-cli 0.61.0', 'opencode 1.18.33', 'codex-acp 2.6.0', 'claude-agent-acp 0.101.0'];
    expect(section).toMatch(/\bexperimental\b/);
    expect(section.match(/[\w-]+ \d+\.\d+\.\d+/g)?.sort()).toEqual([...tried].sort());
    const words = ['a b', '$(touch x)', '"', ''];
    acp.configure({ command: [process.execPath, path.join(root, 'test/process/acp-agent.mjs'), ...words] });
    const { pid } = await acp.running();
    const [agent] = acp.log('started');
    expect(agent).toMatchObject({ words, cwd: acp.home.project });
    const group = readFileSync(`/proc/${agent?.pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2];
    expect([Number(group), agent?.pid === pid]).toEqual([agent?.pid, false]);
    expect(given('initialize')).toMatchObject({ protocolVersion: 1 });
  });
});
