// A scripted agent on the agent's side of the protocol's library. What a turn does is read from the file `turn` of AGENT_DIR
// when its prompt comes; what happened is appended to `log`, one JSON line each.

import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { agent, ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const directory = process.env.AGENT_DIR;
const file = (name) => path.join(directory, name);
const log = (event, more = {}) =>
  appendFileSync(file('log'), `${JSON.stringify({ event, at: Date.now(), ...more })}\n`);
const script = existsSync(file('script')) ? JSON.parse(readFileSync(file('script'), 'utf8')) : {};
const turnOf = () => (existsSync(file('turn')) ? readFileSync(file('turn'), 'utf8').trim() : 'read');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const { POSTBELL_SESSION, POSTBELL_LISTENER, CLAUDE_CODE_SESSION_ID, CLAUDE_CODE_MESSAGING_TOKEN } =
  process.env;
log('started', {
  pid: process.pid,
  words: process.argv.slice(2),
  cwd: process.cwd(),
  env: { POSTBELL_SESSION, POSTBELL_LISTENER, CLAUDE_CODE_SESSION_ID, CLAUDE_CODE_MESSAGING_TOKEN },
});
if (script.stubborn) {
  const note = { event: 'SIGTERM of the child' };
  const deaf = `process.on('SIGTERM', () => require('fs').appendFileSync(${JSON.stringify(file('log'))}, ${JSON.stringify(`${JSON.stringify(note)}\n`)})); process.on('SIGINT', () => {}); process.on('SIGHUP', () => {}); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['-e', deaf], { stdio: 'ignore' });
  log('child', { pid: child.pid });
  process.on('SIGTERM', () => log('SIGTERM'));
}

let mcp;
let cancelled = new AbortController();
let sessions = 0;
const sessionId = () => `agent-session-${sessions}`;

async function startServer(server) {
  mcp = new Client({ name: 'scripted-agent', version: '1' });
  const env = {
    PATH: process.env.PATH,
    ...Object.fromEntries(server.env.map((one) => [one.name, one.value])),
  };
  await mcp.connect(
    new StdioClientTransport({ command: server.command, args: server.args, env, cwd: '/', stderr: 'ignore' }),
  );
  const { tools } = await mcp.listTools();
  log('tools', { names: tools.map(({ name }) => name) });
}

/** The answer of one of our tools. */
async function call(name, input) {
  const { content } = await mcp.callTool({ name, arguments: input });
  const answer = JSON.parse(content[0].text);
  log('tool', { name, input, answer });
  return answer;
}

const optionSets = {
  plain: [
    ['allow_always', 'allow_always'],
    ['allow_once', 'allow_once'],
    ['reject_once', 'reject_once'],
  ],
  other: [
    ['proceed_once', 'allow_once'],
    ['proceed_always', 'allow_always'],
    ['cancel', 'reject_once'],
  ],
  always: [
    ['yes', 'allow_always'],
    ['no', 'reject_always'],
  ],
};

async function ask(client, toolCall, set = 'plain', told) {
  if (told) await client.notify('session/update', { sessionId: sessionId(), update: told });
  const options = optionSets[set].map(([optionId, kind]) => ({ optionId, kind, name: optionId }));
  const { outcome } = await client.request('session/request_permission', {
    sessionId: sessionId(),
    toolCall: { toolCallId: `call-${Math.random()}`, ...toolCall },
    options,
  });
  log('permission', { title: toolCall.title ?? toolCall.toolCallId, set, outcome });
}

const shell = { title: 'receive_messages (postbell MCP Server)', kind: 'execute' };
const foreign = { title: 'read (other MCP Server)', kind: 'other' };
const own = { title: 'receive_messages (postbell MCP Server)', kind: 'other' };
const ownByName = { toolCallId: 'c1', name: 'mcp__postbell__receive_messages', title: 'x', kind: 'other' };
const foreignByName = { toolCallId: 'c2', name: 'mcp__postbell__x__receive', title: 'x', kind: 'other' };
const codexCall = (server) => ({
  sessionUpdate: 'tool_call',
  toolCallId: `of-${server}`,
  title: `mcp.${server}.receive_messages`,
  kind: 'execute',
  rawInput: { server, tool: 'receive_messages', arguments: {} },
  _meta: { is_mcp_tool_call: true },
});

const turns = {
  read: async () => {
    const { messages } = await call('receive_messages', {});
    if (messages.length === 0) return;
    const { principal_id } = await call('get_my_session_id', {});
    for (const { message_id, sender } of messages)
      await call('message', {
        action: 'send',
        sender: principal_id,
        recipient: sender,
        idempotency_key: `reply to ${message_id}`,
        reply_to: message_id,
        payload: 'done by the agent',
      });
    await call('acknowledge_messages', { messages: messages.map(({ receipt }) => receipt) });
  },
  ask: async (client) => {
    for (const set of ['plain', 'other', 'always']) {
      await ask(client, own, set);
      await ask(client, foreign, set);
    }
    await ask(client, shell);
    await ask(client, ownByName);
    await ask(client, foreignByName);
    for (const server of ['postbell', 'other'])
      await ask(client, { toolCallId: `of-${server}`, kind: 'execute' }, 'plain', codexCall(server));
  },
  strange: async (client) => {
    const strange = { sessionUpdate: 'hologram', shape: { of: 'things' } };
    await client.notify('session/update', { sessionId: sessionId(), update: strange });
    process.stdout.write('{"not": JSON\n');
    process.stdout.write('[]\n"text"\n');
    await client.notify('session/update', { sessionId: sessionId() });
  },
};

const says = (client, text, sessionUpdate = 'agent_message_chunk') =>
  client.notify('session/update', {
    sessionId: sessionId(),
    update: { sessionUpdate, content: { type: 'text', text } },
  });

async function prompted({ client, params }) {
  const turn = turnOf();
  log('prompt', { turn, text: params.prompt.map(({ text }) => text).join('') });
  cancelled = new AbortController();
  if (turn === 'die') process.exit(7);
  if (turn === 'refuse') throw new RequestError(-32_603, 'not now');
  if (turn === 'beside')
    await client.notify('session/update', {
      sessionId: sessionId(),
      update: { sessionUpdate: 'available_commands_update', availableCommands: [] },
    });
  const silent = turn === 'silent' || turn === 'beside';
  if (!silent) await says(client, '{"receipt_kind":"intake","state":"acknowledged"}');
  if (silent || turn === 'hold') while (!existsSync(file('go')) && !cancelled.signal.aborted) await pause(20);
  if (cancelled.signal.aborted) {
    log('cancelled');
    return { stopReason: 'cancelled' };
  }
  await turns[turn]?.(client);
  const stopReason = ['refusal', 'max_tokens', 'max_turn_requests', 'cancelled'].find((one) => one === turn);
  log('stop', { turn });
  return { stopReason: stopReason ?? 'end_turn' };
}

const failing = (step) => {
  log(step);
  if (script.die === step) process.exit(7);
  if (script.fail === step) throw new RequestError(-32_000, 'Authentication required: log in first');
};

const app = agent({ name: 'scripted-agent' })
  .onRequest('initialize', ({ params }) => {
    failing('initialize');
    writeFileSync(file('initialize'), JSON.stringify(params));
    return {
      protocolVersion: script.version ?? 1,
      agentInfo: { name: 'scripted-agent', version: '1.0' },
      agentCapabilities: { loadSession: false },
      authMethods: [{ id: 'login', name: 'Log in' }],
    };
  })
  .onRequest('authenticate', () => failing('authenticate'))
  .onRequest('session/new', async ({ params }) => {
    sessions += 1;
    failing('session/new');
    writeFileSync(file('session'), JSON.stringify(params));
    if (!script.ignoresServers) await startServer(params.mcpServers[0]);
    const modes = {
      currentModeId: 'auto',
      availableModes: ['auto', 'careful'].map((id) => ({ id, name: id })),
    };
    return { sessionId: sessionId(), ...(script.modes !== false && { modes }) };
  })
  .onRequest('session/set_mode', async ({ params }) => {
    failing('session/set_mode');
    if (script.holdsMode) while (!existsSync(file('go'))) await pause(20);
    log('mode', { mode: params.modeId });
    return {};
  })
  .onNotification('session/cancel', () => {
    log('cancel');
    cancelled.abort();
  })
  .onRequest('session/prompt', prompted);

const connection = app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
log('input ended');
await mcp?.close();
if (!script.stubborn) process.exit(0);
setInterval(() => {}, 1_000);
