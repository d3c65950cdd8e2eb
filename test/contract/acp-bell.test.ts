// The ACP bell, its session and its permissions, over a link whose agent is written by the test.

import { beforeEach, describe, expect, it } from 'vitest';
import { acpBell } from '../../src/hosts/acp/bell.ts';
import { triedAgents, untried } from '../../src/hosts/acp/known.ts';
import { AgentRefused, type Link, LinkClosed } from '../../src/hosts/acp/link.ts';
import { isOwnCall, outcomeOf } from '../../src/hosts/acp/permission.ts';
import { AcpSession, type Stop } from '../../src/hosts/acp/session.ts';
import { ringOnce } from '../../src/mailbox/ring-once.ts';
import type { RingItem } from '../../src/ports/bell.ts';
import { FakeClock, settle } from './clock.ts';

const server = { command: '/bin/node', words: ['postbell', 'mcp'], environment: { A: 'b' } };
const item: RingItem = {
  content: 'notice',
  notification_id: 'ab12',
  text: 'a notice',
  covered: [],
  session_id: 's1',
};
const accepted = {
  outcome: 'accepted',
  content: 'notice',
  receipt: { notification_id: 'ab12', state: 'host_queued' },
};

/** Each request that the agent was sent, and the way to answer it. */
interface Asked {
  method: string;
  params: Record<string, unknown>;
  answer(result: object): void;
  fail(error: Error): void;
}

let asked: Asked[];
let told: { method: string; params: object }[];
let notes: string[];
let stops: [Stop, string | undefined][];
let session: AcpSession;
let loaded: boolean;
let permitted: [string, boolean][];

const link: Link = {
  request: (method, params) =>
    new Promise((resolve, reject) => {
      asked.push({ method, params: params as Record<string, unknown>, answer: resolve, fail: reject });
    }),
  notify: async (method, params) => void told.push({ method, params }),
};
const neverWithdrawn = new AbortController().signal;
const newest = (): Asked => asked.at(-1) as Asked;
const prompts = (): string[] =>
  asked
    .filter(({ method }) => method === 'session/prompt')
    .map(({ params }) => (params.prompt as { text: string }[])[0]?.text ?? '');
const update = (of: object, sessionId = 'x'): void => session.onUpdate({ sessionId, update: of });
const chunk = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'a word' } };
const bell = () =>
  acpBell({
    session,
    hostKind: 'gemini',
    toolsLoaded: () => loaded,
    onStop: (...stop) => void stops.push(stop),
  });
const ring = () => bell().ring(item, new AbortController().signal);

async function started(answers: object = {}): Promise<void> {
  const beginning = session.start(link, '/there', server);
  newest().answer({ protocolVersion: 1, agentInfo: { name: 'gemini-cli', version: '0.61.0' } });
  await settle();
  newest().answer({ sessionId: 'x', ...answers });
  await beginning;
}

beforeEach(() => {
  [asked, told, notes, stops, permitted] = [[], [], [], [], []];
  loaded = true;
  session = new AcpSession({
    note: (line) => void notes.push(line),
    permit: (title, own) => {
      permitted.push([title, own]);
      return own ? 'allow' : 'reject';
    },
  });
});

describe('the ACP bell', () => {
  beforeEach(() => started());

  it('accepts at the first word on its prompt, long before its end', async () => {
    const ringing = ring();
    expect(prompts()).toEqual(['a notice']);
    update(chunk);
    expect(await ringing).toEqual(accepted);
    expect(bell().state()).toEqual({ state: 'busy' });
    newest().answer({ stopReason: 'end_turn' });
    await settle();
    expect(bell().state()).toEqual({ state: 'ready' });
  });

  it.each(['end_turn', 'refusal', 'cancelled', 'max_tokens', 'max_turn_requests'])(
    'accepts at an end without a word, which is %s',
    async (stopReason) => {
      const ringing = bell().ring({ ...item, attempt_id: 'att_1' }, new AbortController().signal);
      newest().answer({ stopReason });
      expect(await ringing).toEqual(accepted);
      expect(stops).toEqual([[{ stop: 'ended', reason: stopReason }, 'att_1']]);
    },
  );

  it('takes no update for an answer that is not on its prompt, or of another session', async () => {
    let outcome: unknown;
    void ring().then((known) => (outcome = known));
    for (const sessionUpdate of [
      'available_commands_update',
      'current_mode_update',
      'config_option_update',
      'session_info_update',
      'usage_update',
      'hologram',
    ])
      update({ sessionUpdate });
    update(chunk, 'another');
    session.onUpdate('nothing of the kind');
    await settle();
    expect(outcome).toBeUndefined();
    expect(notes).toEqual(['the agent sent an update of an unknown kind, "hologram"']);
    update({ sessionUpdate: 'tool_call', toolCallId: 'c' });
    await settle();
    expect(outcome).toEqual(accepted);
  });

  it.each(['agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk'])(
    'takes no late %s of a message of the turn before for its first word',
    async (sessionUpdate) => {
      const content = { type: 'text', text: 'a word' };
      const says = (messageId?: string): void => update({ sessionUpdate, content, messageId });
      session.type('a first prompt');
      says('m1');
      newest().answer({ stopReason: 'end_turn' });
      await settle();
      says('m2');
      let outcome: unknown;
      void ring().then((known) => (outcome = known));
      says('m1');
      says('m2');
      await settle();
      expect([prompts().length, outcome]).toEqual([2, undefined]);
      says('m3');
      await settle();
      expect(outcome).toEqual(accepted);
    },
  );

  it('takes no late word on a call of the turn before for its first', async () => {
    session.type('a first prompt');
    update({ sessionUpdate: 'tool_call', toolCallId: 'c' });
    newest().answer({ stopReason: 'end_turn' });
    await settle();
    let outcome: unknown;
    void ring().then((known) => (outcome = known));
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'completed' });
    await settle();
    expect([prompts().length, outcome]).toEqual([2, undefined]);
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'd', status: 'completed' });
    await settle();
    expect(outcome).toEqual(accepted);
  });

  it.each([[null], [{}], [{ stopReason: '' }], [{ stopReason: { toString: 1, valueOf: 1 } }]])(
    'is unknown where the prompt is answered with %j',
    async (said) => {
      const ringing = ring();
      newest().answer(said as never);
      expect(await ringing).toEqual({ outcome: 'unknown', code: 'invalid_response' });
    },
  );

  it('ends for no update, whatever its values name toString', async () => {
    const evil = { toString: 1, valueOf: 1 };
    update({ sessionUpdate: evil });
    update({ sessionUpdate: 'tool_call', toolCallId: evil, title: evil });
    const ringing = ring();
    update(chunk);
    expect(await ringing).toEqual(accepted);
  });

  it('is unknown where the connection is lost after the prompt was written, and refused before that', async () => {
    const ringing = ring();
    newest().fail(new LinkClosed());
    expect(await ringing).toEqual({ outcome: 'unknown', code: 'adapter_disconnected' });
    session.gone();
    expect(await ring()).toEqual({ outcome: 'rejected', code: 'adapter_disconnected', permanent: true });
    expect([prompts().length, bell().state()]).toEqual([1, { state: 'gone' }]);
  });

  it.each([
    [-32_600, false],
    [-32_601, true],
    [-32_602, true],
    [-32_000, false],
  ])(
    '[HOST-010] is refused by an answer of error %i, which comes before a turn; where the agent knows no such method, for good',
    async (code, permanent) => {
      const ringing = ring();
      newest().fail(new AgentRefused(code, 'why'));
      expect(await ringing).toEqual({ outcome: 'rejected', code: 'adapter_rejected', permanent });
    },
  );

  it.each([-32_603, 500, -32_700, 0])(
    'is unknown where error %i may have ended a turn that had begun',
    async (code) => {
      const ringing = ring();
      newest().fail(new AgentRefused(code, 'why'));
      expect(await ringing).toEqual({ outcome: 'unknown', code: 'adapter_error' });
    },
  );

  it('is unknown after ten seconds of silence, and answers late', async () => {
    const clock = new FakeClock();
    let result: Awaited<ReturnType<typeof ringOnce>> | undefined;
    void ringOnce(clock, bell(), item).then((known) => (result = known));
    await clock.advance(9_999);
    expect(result).toBeUndefined();
    await clock.advance(1);
    expect(result?.outcome).toEqual({ outcome: 'unknown', code: 'host_outcome_timeout' });
    update(chunk);
    expect(await result?.late).toEqual(accepted);
    expect(prompts()).toHaveLength(1);
  });

  it('refuses, and prompts nothing, until the agent has loaded our tools', async () => {
    loaded = false;
    expect(bell().state()).toEqual({ state: 'refused', reason: 'tools_not_loaded' });
    expect(await ring()).toMatchObject({ outcome: 'rejected', code: 'adapter_rejected' });
    expect(prompts()).toEqual([]);
    loaded = true;
    expect(bell().state()).toEqual({ state: 'ready' });
  });

  it('[HOST-207] never prompts during a turn, and a person\u2019s lines go first', async () => {
    void ring();
    session.type('one');
    session.type('two');
    expect(await ring()).toEqual({ outcome: 'rejected', code: 'adapter_error', permanent: false });
    const ends = async (): Promise<void> => {
      newest().answer({ stopReason: 'end_turn' });
      await settle();
    };
    await ends();
    expect([prompts(), bell().state()]).toEqual([['a notice', 'one'], { state: 'busy' }]);
    await ends();
    expect([prompts(), bell().state()]).toEqual([['a notice', 'one', 'two'], { state: 'busy' }]);
    await ends();
    expect(bell().state()).toEqual({ state: 'ready' });
    expect(told).toEqual([]);
  });

  it('cancels the turn that runs when it ends, and none otherwise', async () => {
    await session.cancel();
    expect(told).toEqual([]);
    session = new AcpSession({ note: () => {}, permit: () => 'allow' });
    await started();
    void ring();
    const cancelling = session.cancel();
    await settle();
    newest().answer({ stopReason: 'cancelled' });
    await cancelling;
    expect(told).toEqual([{ method: 'session/cancel', params: { sessionId: 'x' } }]);
    expect(bell().state()).toEqual({ state: 'gone' });
    const asks = { sessionId: 'x', toolCall: { name: 'mcp__postbell__message' }, options: [] };
    expect(await session.onPermission(asks, neverWithdrawn)).toEqual({ outcome: { outcome: 'cancelled' } });
  });
});

describe('an ACP session', () => {
  it('is not begun in another version of the protocol', async () => {
    const beginning = session.start(link, '/there', server);
    newest().answer({ protocolVersion: 2 });
    await expect(beginning).rejects.toThrow('another version of the protocol');
    expect(asked.map(({ method }) => method)).toEqual(['initialize']);
  });

  it('is asked for with our server and nothing else', async () => {
    await started();
    expect(newest().params).toEqual({
      cwd: '/there',
      mcpServers: [
        {
          name: 'postbell',
          command: '/bin/node',
          args: ['postbell', 'mcp'],
          env: [{ name: 'A', value: 'b' }],
        },
      ],
    });
  });

  it('knows an agent and a version that were tried from others', () => {
    for (const [name, version] of Object.entries(triedAgents)) {
      expect(untried({ name, version })).toBeUndefined();
      expect(untried({ name, version: '99.0.0' })).toContain(version);
    }
    for (const name of ['another', 'constructor', ''])
      expect(untried({ name, version: '1' })).toMatch(/not tried/);
  });
});

describe('a permission', () => {
  const options = (...kinds: string[]) => ({
    options: kinds.map((kind) => ({ kind, optionId: `id of ${kind}` })),
  });
  const selected = (kind: string) => ({ outcome: { outcome: 'selected', optionId: `id of ${kind}` } });
  const cancelled = { outcome: { outcome: 'cancelled' } };

  it('is chosen by kind, once, or cancelled where there is no such kind', () => {
    const all = options('allow_always', 'reject_always', 'allow_once', 'reject_once');
    expect(outcomeOf(all, 'allow')).toEqual(selected('allow_once'));
    expect(outcomeOf(all, 'reject')).toEqual(selected('reject_once'));
    expect(outcomeOf(all, 'cancel')).toEqual(cancelled);
    const always = options('allow_always', 'reject_always');
    for (const permit of ['allow', 'reject'] as const) {
      expect(outcomeOf(always, permit)).toEqual(cancelled);
      for (const malformed of [undefined, {}, { options: [null, 1, { kind: 'allow_once' }] }])
        expect(outcomeOf(malformed, permit)).toEqual(cancelled);
    }
  });

  const claude = (name: string, mcpServer?: string) => ({
    name,
    _meta: { claudeCode: { toolName: name, ...(mcpServer && { mcpServer: { name: mcpServer } }) } },
  });
  const codex = (of: string) => ({
    rawInput: { server: of, tool: 'message', arguments: {} },
    _meta: { is_mcp_tool_call: true },
  });
  it.each([
    ['Gemini', { title: 'receive_messages (postbell MCP Server)', kind: 'other' }, true],
    ['Gemini, another server', { title: 'receive_messages (other MCP Server)', kind: 'other' }, false],
    ['a shell', { title: 'message (postbell MCP Server)', kind: 'execute' }, false],
    ['more than a title', { title: 'rm x; message (postbell MCP Server)', kind: 'other' }, false],
    ['a title over two lines', { title: 'x\nmessage (postbell MCP Server)', kind: 'other' }, false],
    ['Claude', claude('mcp__postbell__message', 'postbell'), true],
    ['Claude, by name alone', claude('mcp__postbell__message'), true],
    ['Claude, the plugin', claude('mcp__plugin_postbell_postbell__message'), false],
    ['Claude, another server', claude('mcp__postbell__message', 'postbell__'), false],
    ['a server whose name begins so', claude('mcp__postbell__more__message'), false],
    ['Codex', codex('postbell'), true],
    ['Codex, another server', codex('postbell2'), false],
    ['Codex, a command that says so', { rawInput: { server: 'postbell', command: 'x' } }, false],
    ['a call of which nothing is said', {}, false],
  ])('for our own tool is known: %s', (_, call, own) => {
    expect(isOwnCall(call)).toBe(own);
  });

  it('is decided by all that the agent said of the call, of this turn alone', async () => {
    await started();
    void ring();
    update({ sessionUpdate: 'tool_call', toolCallId: 'c', ...codex('postbell') });
    const asks = { sessionId: 'x', toolCall: { toolCallId: 'c' }, ...options('allow_once', 'reject_once') };
    expect(await session.onPermission(asks, neverWithdrawn)).toEqual(selected('allow_once'));
    newest().answer({ stopReason: 'end_turn' });
    await settle();
    void ring();
    expect(await session.onPermission(asks, neverWithdrawn)).toEqual(selected('reject_once'));
    expect(await session.onPermission({ ...asks, sessionId: 'another' }, neverWithdrawn)).toEqual(cancelled);
    expect(permitted.map(([, own]) => own)).toEqual([true, false]);
  });

  it('that nobody has answered is off when its turn ends, or the agent takes it back', async () => {
    const withdrawn: AbortSignal[] = [];
    const permit = (_title: string, _own: boolean, off: AbortSignal): Promise<'allow'> => {
      withdrawn.push(off);
      return new Promise((answer) => off.addEventListener('abort', () => answer('allow')));
    };
    session = new AcpSession({ note: () => {}, permit });
    await started();
    void ring();
    const asks = { sessionId: 'x', toolCall: { toolCallId: 'c' }, ...options('allow_once', 'reject_once') };
    const [one, other] = [new AbortController(), new AbortController()];
    const answers = [one, other].map(({ signal }) => session.onPermission(asks, signal));
    one.abort();
    expect(await answers[0]).toEqual(cancelled);
    expect(withdrawn.map(({ aborted }) => aborted)).toEqual([true, false]);
    newest().answer({ stopReason: 'cancelled' });
    expect(await answers[1]).toEqual(cancelled);
  });
});
