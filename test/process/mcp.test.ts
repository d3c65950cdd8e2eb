// The MCP server, by the official client over real stdio.

import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channelHost } from './channel-host.ts';
import { type Home, makeHome, until } from './home.ts';
import { answer, factsOf, postbell } from './postbell.ts';
import { liveCards, openSession, type Session } from './session.ts';

let home: Home;
let alice: Session;
let project: string;

beforeEach(async () => {
  home = makeHome();
  home.start(['router']);
  alice = await openSession(home, { CLAUDE_CODE_SESSION_ID: 'alice-1', POSTBELL_RECIPIENT: 'alice' });
  const sent = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  project = sent.project as string;
});

afterEach(async () => {
  await alice.close();
  await home.end();
});

describe('postbell mcp', () => {
  it('lists its tools, each with a closed schema, and stays under 2,048 characters of instructions', async () => {
    const { tools } = await alice.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'message',
      'receive_messages',
      'acknowledge_messages',
      'conversation_history',
      'message_status',
      'list_pending',
      'failed_deliveries',
      'get_my_session_id',
      'set_summary',
      'cancel_task',
      'list_peers',
      'list_pair_requests',
      'request_pair',
      'accept_pair',
      'reject_pair',
      'add_peer',
      'remove_peer',
    ]);
    for (const { inputSchema } of tools)
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    expect((alice.client.getInstructions() as string).length).toBeLessThan(2_048);
  });

  it.each(['2025-11-25', '2024-11-05'])(
    '[HOST-111] refuses server/discover with -32601, speaks %s, and is reachable only once initialized',
    async (protocolVersion) => {
      const raw = home.start(['mcp'], { CLAUDE_CODE_SESSION_ID: 'raw', CLAUDE_PROJECT_DIR: home.project });
      const say = (message: object) =>
        raw.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      const ask = (id: number, method: string, params: object) => say({ id, method, params });
      const live = async () => {
        const found = await answer(home.env, home.project, ['message', 'discover', '--project', project]);
        return (found.cards as { session_id: string }[]).map(({ session_id }) => session_id).sort();
      };
      await liveCards(home, project, 1);
      ask(1, 'server/discover', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } });
      ask(2, 'initialize', {
        protocolVersion,
        capabilities: {},
        clientInfo: { name: 'raw', version: '1' },
      });
      await expect.poll(() => raw.stdout().trim().split('\n').length, { timeout: 5_000 }).toBe(2);
      const [refused, initialized] = raw
        .stdout()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(refused).toMatchObject({ id: 1, error: { code: -32601 } });
      expect(initialized).toMatchObject({ id: 2, result: { protocolVersion } });
      expect(initialized.result.capabilities).toEqual({ tools: {} });
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(await live()).toEqual(['alice-1']);
      say({ method: 'notifications/initialized' });
      await liveCards(home, project, 2);
      expect(await live()).toEqual(['alice-1', 'raw']);
    },
  );

  it('[HOST-037] is rung as any other where the version of its host and its protocol are not known', async () => {
    const env = { CLAUDE_CODE_SESSION_ID: 'raw', CLAUDE_PROJECT_DIR: home.project };
    const raw = home.start(['mcp'], env);
    const say = (message: object) =>
      raw.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const clientInfo = { name: 'claude-code', version: '999.0.0-unheard-of' };
    say({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2099-01-01', capabilities: {}, clientInfo },
    });
    await until('it answers', () => raw.stdout().endsWith('\n'));
    expect(JSON.parse(raw.stdout())).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } });
    say({ method: 'notifications/initialized' });
    await liveCards(home, project, 2);
    say({ id: 2, method: 'no/such/method', params: {} });
    await until('it answers that too', () => raw.stdout().trim().split('\n').length === 2);
    expect(JSON.parse(raw.stdout().trim().split('\n')[1] as string)).toMatchObject({
      id: 2,
      error: { code: -32601 },
    });
    const input = { action: 'send', sender: 'bob', recipient: 'raw', target_kind: 'session', payload: 'x' };
    const { data } = await alice.call('message', { ...input, idempotency_key: 'k' });
    expect(data.native_delivery).toMatchObject({ status: 'native_accepted' });
    expect(raw.child.exitCode).toBeNull();
  });

  it('answers also a request that has not the form of one, and goes on', async () => {
    const raw = home.start(['mcp', '--no-register'], { CLAUDE_CODE_SESSION_ID: 'raw' });
    const write = (text: string) => raw.child.stdin?.write(text);
    const say = (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    say({ id: 0, method: 'initialize', params });
    say({ method: 'notifications/initialized' });
    const call = { name: 'get_my_session_id', arguments: {} };
    const odd = [5, 'x', null, true, [], { progressToken: {} }];
    for (const [nth, _meta] of odd.entries())
      say({ id: nth + 1, method: 'tools/call', params: { ...call, _meta } });
    say({ id: 'params', method: 'tools/call', params: 7 });
    say({ id: 'method', method: 7, params: call });
    // Nothing that waits for an answer.
    for (const text of ['null', '7', '[]', '{', '', '{"jsonrpc":"2.0","id":1,"result":7}'])
      write(`${text}\n`);
    say({ method: 'notifications/cancelled', params: 7 });
    const last = JSON.stringify({
      jsonrpc: '2.0',
      id: 'last',
      method: 'tools/call',
      params: { ...call, _meta: 5 },
    });
    write(last.slice(0, 40));
    await new Promise((resolve) => setTimeout(resolve, 100));
    write(`${last.slice(40)}\n`);
    say({ id: 'good', method: 'tools/call', params: { ...call, _meta: {} } });
    const answers = () =>
      raw
        .stdout()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { id: unknown; error?: { code: number }; result?: object });
    await until('the good one is answered', () => answers().some(({ id }) => id === 'good'));
    const refused = answers().filter(({ error }) => error?.code === -32600);
    expect(refused.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 'params', 'method', 'last']);
    expect(answers()).toHaveLength(refused.length + 2);
    raw.child.stdin?.end();
    expect(await raw.exited).toEqual({ code: 0, signal: null });
  });

  it('walks a message from send to acknowledge, with the same answers as the CLI', async () => {
    const [card] = await liveCards(home, project, 1);
    expect(card).toEqual({
      session_id: 'alice-1',
      principal_id: 'alice',
      host_kind: 'claude',
      project,
      model: null,
      work_summary: null,
      active: true,
      generation: 1,
      lease_expires_at_ms: expect.any(Number),
    });
    const discovered = await alice.call('message', { action: 'discover' });
    expect(discovered.data).toEqual(
      await answer(home.env, home.project, ['message', 'discover', '--project', project]),
    );

    const input = {
      action: 'send',
      sender: 'bob',
      recipient: 'alice',
      payload: { n: 1 },
      content_type: 'application/json',
      idempotency_key: 'k',
    };
    const sent = await alice.call('message', input);
    expect(sent.data).toMatchObject({
      project,
      recipient: 'alice',
      provenance: { transport: 'mcp', source_host: 'test-host', session: 'alice-1' },
    });
    // The router is told and not waited for: whether the answer already shows its hand-off is a race.
    expect(['receiver_stored', 'inbox_queued']).toContain(sent.data.delivery_state);
    const message_id = sent.data.message_id as string;
    const scope = { recipient: 'alice', message_id };

    const polled = await alice.call('message', { action: 'poll', recipient: 'alice' });
    expect(polled.data.events).toMatchObject([{ event_kind: 'message_available', message_id }]);
    const fetched = await alice.call('message', { action: 'fetch', ...scope });
    expect(fetched.data).toMatchObject({ payload: { n: 1 }, untrusted: true });
    const received = await alice.call('receive_messages', {});
    const [message] = received.data.messages as { receipt: object }[];
    expect(message).toMatchObject({
      message_id,
      payload: { n: 1 },
      receipt: { sender: 'local', msg_id: message_id },
    });
    const done = await alice.call('acknowledge_messages', { messages: [message?.receipt] });
    expect(done.data).toEqual({ acknowledged: 1, unchanged: 0, refused: [] });
    expect((await alice.call('receive_messages', {})).data).toEqual({
      messages: [],
      progress_waiting: 0,
      remaining: 0,
      elsewhere: [],
    });

    const lasting = (receipts: unknown) => JSON.stringify(receipts).replace(/"observed_at":"[^"]+"/g, '');
    // An attempt of the router may end between the two questions.
    await until('tool and command say the same', async () => {
      const byTool = await alice.call('message', { action: 'receipts', ...scope });
      const byCommand = await factsOf(home.env, home.project, { project, ...scope });
      expect(byCommand.state).toBe('receiver_acknowledged');
      return lasting(byTool.data.receipts) === lasting(byCommand.receipts);
    });
  });

  it('[HOST-019, SES-159] shows a summary of at most 200 characters in discover within a second, trimmed; an empty one clears it', async () => {
    const summaryOf = async () => (await liveCards(home, project, 1))[0]?.work_summary;
    const shown = (text: string | null) => expect.poll(summaryOf, { timeout: 1_000 }).toBe(text);
    await liveCards(home, project, 1);
    expect((await alice.call('set_summary', { summary: '  the parser \n' })).isError).toBe(false);
    await shown('the parser');
    const longest = '\u{1f600}'.repeat(200);
    expect((await alice.call('set_summary', { summary: longest })).data).toEqual({ summary: longest });
    await shown(longest);
    const { isError, data } = await alice.call('set_summary', { summary: `${longest}x` });
    expect([isError, data.error]).toEqual([true, expect.objectContaining({ code: 'invalid_request' })]);
    await alice.call('set_summary', { summary: ' ' });
    await shown(null);
  });

  it('[SES-027] goes on serving its tools when another process of its session has replaced or outranked it', async () => {
    await liveCards(home, project, 1);
    const newer = await openSession(home, { CLAUDE_CODE_SESSION_ID: 'alice-1', POSTBELL_RECIPIENT: 'alice' });
    const generation = async () => (await liveCards(home, project, 1))[0]?.generation;
    await expect.poll(generation, { timeout: 5_000 }).toBe(2);
    const deaf = { CLAUDE_CODE_SESSION_ID: 'alice-1', POSTBELL_RECIPIENT: 'alice', POSTBELL_LISTENER: 'off' };
    const weaker = await openSession(home, deaf);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { cards } = (await weaker.call('message', { action: 'discover', detail: true })).data;
    expect(cards).toMatchObject([{ bell: 'listener', generation: 2 }]);
    await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
    for (const session of [alice, newer, weaker])
      expect((await session.call('receive_messages', {})).data.messages).toMatchObject([
        { payload: 'hello' },
      ]);
    await weaker.close();
    await newer.close();
  });

  it.each([
    ['EOF'],
    ['SIGTERM'],
    ['SIGINT'],
    ['SIGHUP'],
    ['EOF', 'SIGTERM'],
    ['SIGTERM', 'SIGHUP'],
    ['SIGHUP', 'EOF'],
  ] as ('EOF' | NodeJS.Signals)[][])(
    '[HOST-127] ends at %s %s: nobody is registered any more, and the store is whole',
    async (...events) => {
      const server = channelHost(home, ['mcp'], { CLAUDE_CODE_SESSION_ID: 'ending' });
      await server.begin();
      const store = new BetterSqlite3(path.join(home.env.POSTBELL_HOME as string, 'postbell.db'), {
        readonly: true,
      });
      const left = () =>
        store.prepare(`SELECT disconnected_at FROM connection WHERE session_id = 'ending'`).pluck().all();
      await until('it is registered', () => left().length === 1);
      const began = Date.now();
      for (const event of events)
        if (event === 'EOF') server.child.stdin?.end();
        else server.child.kill(event);
      expect(await server.exited).toEqual({ code: 0, signal: null });
      expect(Date.now() - began).toBeLessThan(1_000);
      expect([left(), store.pragma('integrity_check', { simple: true })]).toEqual([
        [expect.any(String)],
        'ok',
      ]);
      store.close();
    },
  );

  it('says who it is, and lists no failed notice where none failed', async () => {
    const [card] = await liveCards(home, project, 1);
    expect((await alice.call('get_my_session_id', {})).data).toEqual({
      session_id: 'alice-1',
      aliases: [],
      project,
      principal_id: 'alice',
      bell: 'listener',
      generation: card?.generation,
    });
    expect((await alice.call('failed_deliveries', { action: 'list' })).data).toEqual({ failed: [] });
    const unknown = await alice.call('failed_deliveries', { action: 'read', id: 'none' });
    expect(unknown.data.error).toMatchObject({ code: 'not_found' });
    const env = { ...home.env, CLAUDE_CODE_SESSION_ID: 'alice-1' };
    expect(await answer(env, home.project, ['inbox', 'failed', 'list'])).toEqual({ failed: [] });
    const bare = await postbell(env, home.project, ['inbox', 'failed']);
    expect([bare.code, bare.stderr]).toEqual([1, 'postbell: usage: name the action (see --help)\n']);
  });

  it('[INB-110] lists, reads, rings again and discards a failed notice, by tool and by command', async () => {
    const store = new BetterSqlite3(path.join(home.env.POSTBELL_HOME as string, 'postbell.db'));
    home.atEnd(() => store.close());
    const save = store.prepare(
      `INSERT INTO failed_delivery (id, session_root, kind, sender, reason, text, recorded_at)
       VALUES (?, 'alice-1', 'notice', 'postbell', 'adapter_rejected', 'the saved text', 'now')`,
    );
    const entry = { sender: 'postbell', reason: 'adapter_rejected', bytes: 14 };
    const env = { ...home.env, CLAUDE_CODE_SESSION_ID: 'alice-1' };
    const byTool = async (action: string, id?: string) =>
      (await alice.call('failed_deliveries', { action, ...(id && { id }) })).data;
    const byCommand = async (action: string, id?: string) => {
      const words = ['inbox', 'failed', action, '--json', ...(id === undefined ? [] : ['--id', id])];
      const { stdout, stderr } = await postbell(env, home.project, words);
      return JSON.parse(stdout || stderr) as Record<string, unknown>;
    };
    for (const ask of [byTool, byCommand]) {
      save.run('fdl_1');
      expect(await ask('list')).toEqual({ failed: [{ id: 'fdl_1', ...entry }] });
      expect(await ask('read', 'fdl_1')).toEqual({ text: 'the saved text' });
      expect(await ask('discard', 'fdl_1')).toEqual({ done: true });
      for (const action of ['read', 'retry', 'discard']) {
        expect(await ask(action, 'fdl_1')).toMatchObject({ error: { code: 'not_found' } });
        expect(await ask(action)).toMatchObject({ error: { code: 'invalid_request' } });
      }
      expect(await ask('clear')).toMatchObject({ error: { code: 'invalid_request' } });
      save.run('fdl_2');
      expect(await ask('retry', 'fdl_2')).toEqual({ done: true });
      store.exec('DELETE FROM failed_delivery');
    }
  });

  it('records intake and ack by the tool, as facts of their own', async () => {
    const sent = await answer(home.env, home.project, ['send', 'alice', '--json'], 'hello');
    const scope = { recipient: 'alice', message_id: sent.message_id, idempotency_key: 'one' };
    const acked = await alice.call('message', { action: 'ack', ...scope });
    expect(acked.data).toMatchObject({ receipt_kind: 'ack', actor: 'alice', caller_session: 'alice-1' });
    expect((await alice.call('receive_messages', {})).data.messages).toHaveLength(1);
    const taken = await alice.call('message', { action: 'intake', state: 'fetched', ...scope });
    expect(taken.data).toMatchObject({ receipt_kind: 'intake', value: 'fetched' });
    expect((await alice.call('receive_messages', {})).data.messages).toHaveLength(0);
  });

  it('answers a refusal as {error} with the error flag, and never with a payload', async () => {
    const missing = await alice.call('message', { action: 'send', payload: 'SENTINEL-1' });
    expect(missing).toEqual({
      isError: true,
      data: {
        error: {
          code: 'invalid_request',
          message: 'sender, recipient, idempotency_key are required',
          fault: 'caller',
          retryable: false,
          hint: expect.any(String),
          details: { field: 'sender' },
        },
      },
    });
    const unknown = await alice.call('no_such_tool', { payload: 'SENTINEL-2' });
    expect(unknown).toEqual({
      isError: true,
      data: {
        error: {
          code: 'invalid_request',
          message: 'no such tool: "no_such_tool"',
          fault: 'caller',
          retryable: false,
          hint: expect.any(String),
        },
      },
    });
    for (const input of [
      { action: 'nothing' },
      {},
      { action: 'fetch', topic: 1 },
      { action: 'send', session: 'x' },
    ]) {
      const { isError, data } = await alice.call('message', input);
      expect([isError, (data.error as { code: string }).code]).toEqual([true, 'invalid_request']);
    }
  });

  it('gives out the longest mail in answers that its client takes, and consumes no more than it shows', async () => {
    for (let nth = 0; nth < 20; nth += 1)
      await answer(home.env, home.project, ['send', 'alice', '--json'], '\u007f'.repeat(65_534));
    const read = await alice.call('receive_messages', { limit: 100 });
    const count = (read.data.messages as unknown[]).length;
    expect([count > 1, count + (read.data.remaining as number)]).toEqual([true, 20]);
    const peer = (read.data.messages as { sender: string }[])[0]?.sender;
    const history = await alice.call('conversation_history', { peer, limit: 100, consume: true });
    expect(history.data.consumed).toBe((history.data.messages as unknown[]).length);
    const rest = await alice.call('receive_messages', { limit: 100 });
    expect((rest.data.messages as unknown[]).length + (rest.data.remaining as number)).toBe(
      20 - (history.data.consumed as number),
    );
  });

  it.each(['a request beyond what a connection takes', 'the end of its output'])(
    'ends by %s, and is live no more',
    async (why) => {
      const raw = home.start(['mcp'], { CLAUDE_CODE_SESSION_ID: 'raw', CLAUDE_PROJECT_DIR: home.project });
      const say = (message: object) =>
        raw.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      const clientInfo = { name: 'raw', version: '1' };
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
      say({ id: 1, method: 'initialize', params });
      say({ method: 'notifications/initialized' });
      await liveCards(home, project, 2);
      raw.child.stdin?.on('error', () => {});
      if (why === 'the end of its output') raw.child.stdout?.destroy();
      else say({ id: 2, method: 'tools/call', params: { name: 'x', arguments: { y: 'z'.repeat(11e6) } } });
      say({ id: 3, method: 'ping' });
      expect((await raw.exited).code).toBe(0);
      expect(raw.stderr()).toBe('postbell: the connection to the host broke; this server ends\n');
      await liveCards(home, project, 1);
    },
  );

  it('has no project where nothing binds one', async () => {
    const lost = await openSession(home, { CLAUDE_PROJECT_DIR: '', POSTBELL_SESSION: 'lost' });
    const { data } = await lost.call('message', { action: 'poll', recipient: 'alice' });
    expect(data.error).toMatchObject({ code: 'project_unavailable' });
    await lost.close();
  });
});
