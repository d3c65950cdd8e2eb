// One conversation through three hosts: Claude Code asks, a Codex thread answers, an ACP agent gets the result. Between any
// two steps everything is killed: the host, what Postbell started beside it, and the router.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { until } from '../process/home.ts';
import { alive, type Env, factsOf, postbell, program, root } from '../process/postbell.ts';
import { companionsOf } from '../process/processes.ts';
import { mailAgent } from './agent.ts';
import { claudeHome, isResumable, type StreamSession, streamSession } from './claude.ts';
import { type CodexOffice, codexBinary, openCodexOffice } from './codex.ts';
import { describeWithClaude } from './installed.ts';
import { type Block, type Model, startModel } from './model.ts';
import { installPlugin } from './office.ts';
import { openTerminal } from './terminal.ts';

const scripted = fileURLToPath(new URL('../process/acp-agent.mjs', import.meta.url));
const tool = 'mcp__plugin_postbell_postbell__';
const answerText = 'the result is 42';
const question = `tell planner: tell builder: ${answerText}`;

let office: CodexOffice;
let claudeModel: Model;
let claudeEnv: Env;
let planner: string | undefined;
let coder: string | undefined;
beforeEach(async () => {
  planner = undefined;
  coder = undefined;
  office = await openCodexOffice();
  const inboxes = new Map<string, string>();
  const agent = mailAgent(inboxes);
  claudeModel = await startModel((turn) => {
    inboxes.set(turn.session, 'planner');
    if (!turn.newest.includes('ask the coder')) return agent(turn);
    const input = { action: 'send', sender: 'planner', recipient: 'coder', payload: question };
    return { tools: [{ name: `${tool}message`, input: { ...input, idempotency_key: 'the question' } }] };
  });
  office.atEnd(() => claudeModel.close());
  const { dir, project, env } = office;
  claudeEnv = claudeHome({
    dir,
    modelUrl: claudeModel.url,
    project,
    settings: { permissions: { allow: ['mcp__plugin_postbell_postbell'] } },
    extraEnv: { POSTBELL_RECIPIENT: 'planner' },
  });
  expect(claudeEnv.HOME).toBe(env.HOME);
  await installPlugin(claudeEnv, root, project);
});
afterEach(() => office.end());

interface Letter {
  message_id: string;
  project: string;
  sender: string;
  recipient: string;
}

/** All that was ever sent, in order. */
function letters(): Letter[] {
  const file = path.join(office.env.HOME as string, '.local/state/postbell/postbell.db');
  const store = new BetterSqlite3(file, { readonly: true });
  try {
    const sql = `SELECT message_id, message.project, sender, recipient FROM message JOIN delivery USING (message_id)
      WHERE recipient <> 'nobody' ORDER BY message.seq`;
    return store.prepare(sql).all() as Letter[];
  } finally {
    store.close();
  }
}

const kindsOf = async (letter: Letter): Promise<string[]> =>
  (await factsOf(office.env, office.project, letter)).receipts.map(({ receipt_kind }) => receipt_kind);

/** Once the nth message is there, and taken in if that is asked. */
async function arrived(nth: number, taken: boolean): Promise<void> {
  await until(`message ${nth} is stored`, () => letters().length >= nth, 40_000);
  if (!taken) return;
  const acknowledged = async () => (await kindsOf(letters()[nth - 1] as Letter)).includes('ack');
  await until(`message ${nth} is acknowledged`, acknowledged, 40_000);
}

async function killRouter(): Promise<void> {
  const { code, stdout } = await postbell(office.env, office.project, ['router', 'status']);
  if (code !== 0) return;
  const { pid } = JSON.parse(stdout) as { pid: number };
  process.kill(pid, 'SIGKILL');
  await until('the router is gone', () => !alive(pid));
}

/** A session of Claude Code, the same one each time. */
async function claude(run: (session: StreamSession) => Promise<void>): Promise<void> {
  const session = streamSession(
    claudeEnv,
    office.project,
    planner === undefined ? [] : ['--resume', planner],
  );
  office.atEnd(session.end);
  planner = session.sessionId();
  await run(session);
  const [id, env] = [planner, claudeEnv];
  await until('it can be resumed', () => isResumable(env, id));
  session.kill('SIGKILL');
  await session.exited;
  await session.end();
  await killRouter();
}

/** A thread of Codex in a terminal, the same one each time. */
async function codex(run: () => Promise<void>): Promise<void> {
  const words = coder === undefined ? [] : ['resume', coder];
  const env = { ...office.env, POSTBELL_RECIPIENT: 'coder' };
  const terminal = await openTerminal(env, office.project, [codexBinary(), ...words]);
  office.atEnd(terminal.end);
  await terminal.waitForScreen(/Ask Codex to do anything/, 30_000);
  await terminal.type('hello');
  coder ??= (await office.model.waitFor(({ side }) => !side, 20_000)).thread;
  await run();
  process.kill(terminal.pid, 'SIGKILL');
  for (const { pid } of companionsOf(office.dir)) process.kill(pid, 'SIGKILL');
  await terminal.end();
  await killRouter();
}

const agentDir = (): string => path.join(office.dir, 'agent');

/** The ACP agent under its runner, of one name each time. */
async function acp(run: () => Promise<void>): Promise<void> {
  mkdirSync(agentDir(), { recursive: true });
  const config = path.join(office.dir, 'acp.json');
  const command = [process.execPath, scripted];
  const who = { version: 1, host: 'acp', principal_id: 'builder', workspace: office.project, command };
  writeFileSync(config, JSON.stringify(who), { mode: 0o600 });
  const env = { ...office.env, AGENT_DIR: agentDir() };
  const child = spawn(process.execPath, [program, 'host', 'acp', '--config', config], {
    cwd: office.project,
    env,
  });
  const exited = new Promise((resolve) => child.on('close', resolve));
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  office.atEnd(() => child.kill('SIGKILL'));
  await until('it is registered', () => said.includes('gets the mail of'), 20_000);
  await run();
  child.kill('SIGKILL');
  await exited;
  const agents = logged('started').map(({ pid }) => pid as number);
  await until('its agent is gone', () => !agents.some(alive));
  await killRouter();
}

const logged = (event: string): Record<string, unknown>[] =>
  (existsSync(path.join(agentDir(), 'log')) ? readFileSync(path.join(agentDir(), 'log'), 'utf8') : '')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((one) => one.event === event);

/** Whether the message is in what a tool answered; another one may name it as the one it replies to. */
const brings = (answer: unknown, id: string): boolean =>
  JSON.stringify(answer).replaceAll('\\', '').includes(`"message_id":"${id}"`);

/** How often each model was given the message by `receive_messages`: planner, coder, builder. */
function given(message_id: string): number[] {
  const ofClaude = new Set<string>();
  for (const { body } of claudeModel.requests) {
    const blocks = body.messages.flatMap(({ content }): Block[] =>
      typeof content === 'string' ? [] : content,
    );
    const fetches = blocks.filter(({ name }) => name === `${tool}receive_messages`).map(({ id }) => id);
    for (const block of blocks)
      if (fetches.includes(block.tool_use_id) && brings(block.content, message_id))
        ofClaude.add(block.tool_use_id as string);
  }
  const ofCodex = new Set<string>();
  for (const { body } of office.model.requests) {
    const fetches = body.input
      .filter(({ name }) => name === 'receive_messages')
      .map(({ call_id }) => call_id);
    for (const { type, call_id, output } of body.input)
      if (type === 'function_call_output' && fetches.includes(call_id))
        if (brings(output, message_id)) ofCodex.add(call_id as string);
  }
  const ofAcp = logged('tool').filter(({ name }) => name === 'receive_messages');
  const count = ofAcp.filter(({ answer }) =>
    JSON.stringify(answer).includes(`"message_id":"${message_id}"`),
  ).length;
  return [ofClaude.size, ofCodex.size, count];
}

describeWithClaude('a conversation through three hosts', () => {
  it('[SES-127] goes on over every end of every process: nothing is lost, and nothing is taken in twice; neither plugin was set up', async () => {
    await claude(async (session) => {
      session.say('ask the coder');
      await session.waitResult(1, 20_000);
      await arrived(1, false);
    });
    await codex(async () => {
      await arrived(2, false);
      await arrived(1, true);
    });
    await claude(async () => {
      await arrived(3, false);
      await arrived(2, true);
    });
    await acp(async () => {
      await arrived(4, false);
      await arrived(3, true);
    });
    await claude(() => arrived(4, true));

    // Once more, all of them: nothing is told or fetched again.
    const all = letters();
    const before = all.map(({ message_id }) => given(message_id));
    await acp(async () => {});
    // Where the kill came before the last word on the mail, that is what it says now.
    const asked = office.model.requestsOf(coder as string).length;
    const answers = () => office.model.requestsOf(coder as string).slice(asked);
    await codex(() => until('the thread answers', () => answers().some(({ answered }) => answered), 20_000));
    await claude(async (session) => {
      session.say('hello again');
      await session.waitFor(({ type }) => type === 'result', 20_000);
    });
    const configs = path.join(office.env.HOME as string, '.local/state/postbell/hosts');
    expect(existsSync(configs)).toBe(false);
    expect(letters()).toEqual(all);
    expect(all.map(({ sender, recipient }) => `${sender} to ${recipient}`)).toEqual([
      'planner to coder',
      'codex to planner',
      'planner to builder',
      'builder to planner',
    ]);
    expect(before).toEqual([
      [0, 1, 0],
      [1, 0, 0],
      [0, 0, 1],
      [1, 0, 0],
    ]);
    expect(all.map(({ message_id }) => given(message_id))).toEqual(before);
    for (const letter of all) {
      const kinds = await kindsOf(letter);
      expect(kinds.filter((kind) => kind === 'intake' || kind === 'ack')).toEqual(['intake', 'ack']);
    }
  }, 240_000);
});
