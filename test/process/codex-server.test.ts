// `postbell mcp` as a server of Codex: whose it is, who calls, and what it does where no companion rings its thread.

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { instructions } from '../../src/surfaces/mcp/server.ts';
import { type FakeCodex, fakeCodex } from './codex.ts';
import { type Home, makeHome, until } from './home.ts';
import { runHook } from './hook.ts';
import { alive, answer, type Env, program } from './postbell.ts';
import { liveCards, openOther, openStarted, type Session } from './session.ts';
import { tablesOf } from './tables.ts';

const [one, two] = ['01a2359b-9716-7d71-8e13-ff19cf36a487', '01a2359b-9716-7d71-8e13-ff19cf36a488'] as const;

let home: Home;
/** As Codex starts a server: no session, no project; its directory is the plugin's. */
let bare: Env;
let codex: FakeCodex;
beforeEach(() => {
  home = makeHome();
  codex = fakeCodex(home.dir);
  bare = { CLAUDE_PROJECT_DIR: '', PATH: `${codex.bin}:${home.env.PATH}` };
});
afterEach(() => home.end());

const open = (more: Env = {}, name = 'codex-mcp-client'): Promise<Session> =>
  openOther(home, { ...bare, ...more }, { name });

/** A call as Codex makes it for a model of `thread`, or for one of its hooks. */
async function call(session: Session, tool: string, input: object, meta: object) {
  const result = await session.client.callTool({ name: tool, arguments: { ...input }, _meta: { ...meta } });
  const [item] = result.content as { text: string }[];
  return {
    isError: result.isError === true,
    data: JSON.parse(item?.text as string) as Record<string, unknown>,
  };
}
const byModel = (thread: string, root = thread) => ({
  threadId: thread,
  sessionId: root,
  callId: 'call_1',
  itemId: 'fc_1',
});
const byHook = (thread: string) => ({ threadId: thread, progressToken: 1 });
const bind = (session: Session, thread_id: string, meta: object = byHook(thread_id), cwd = home.project) =>
  call(session, 'bind_codex_session', { thread_id, cwd }, meta);
const projectOfHome = async (): Promise<string> =>
  (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;
const meant = async (session: string): Promise<Record<string, unknown>> => {
  const words = [
    'message',
    'send',
    '--project',
    await projectOfHome(),
    '--sender',
    'me',
    '--recipient',
    'dave',
  ];
  const more = ['--intended-session', session, '--idempotency-key', session, '--payload-stdin'];
  return answer(home.env, home.project, [...words, ...more], 'for one of you');
};
const intake = ({ project, message_id }: Record<string, unknown>) => ({
  action: 'intake',
  project,
  recipient: 'dave',
  message_id,
  state: 'ingested',
  idempotency_key: 'k',
});

const tables = () => tablesOf(path.join(home.env.POSTBELL_HOME as string, 'postbell.db'));

describe('binding', () => {
  it('[HOST-139, INB-062, SES-023] is idempotent for one id in either case, refused for another, and before it nothing is registered', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    for (const id of ['', 'x', `${one}0`, one.replaceAll('-', ''), one.replace('a', 'g'), ` ${one}`])
      expect(await bind(session, id, {})).toMatchObject({
        isError: true,
        data: { error: { code: 'invalid_request' } },
      });
    expect((await call(session, 'get_my_session_id', {}, {})).isError).toBe(true);
    expect((await call(session, 'set_summary', { summary: 'x' }, {})).data).toMatchObject({
      error: { code: 'recipient_unavailable' },
    });
    expect(await bind(session, one)).toEqual({ isError: false, data: {} });
    expect(await bind(session, one.toUpperCase())).toEqual({ isError: false, data: {} });
    // By whomever it is asked: nobody in particular, a hook of its thread or of another, a model.
    for (const meta of [{}, byHook(one), byHook(two), byModel(one)])
      expect(await bind(session, two, meta)).toMatchObject({
        isError: true,
        data: { error: { code: 'session_identity_conflict' } },
      });
    expect((await call(session, 'get_my_session_id', {}, {})).data).toMatchObject({ session_id: one });
    expect(instructions).toContain('Never call bind_codex_session');
    const { tools } = await session.client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain('bind_codex_session');
  });

  it('[SES-023] alone makes a server register and send under the name of a thread, whatever else names one', async () => {
    const project = await projectOfHome();
    const shown = { CODEX_THREAD_ID: one };
    const session = await open(shown);
    const sent = await meant(one);
    // Another client in a shell of Codex: nobody binds its server.
    const other = await open({ ...shown, CLAUDE_PROJECT_DIR: home.project }, 'some-other-client');
    const before = tables();
    for (const [server, meta] of [
      [session, byModel(one)],
      [session, {}],
      [other, {}],
    ] as const)
      expect((await call(server, 'get_my_session_id', {}, meta)).data).toMatchObject({ session_id: one });
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    for (const server of [session, other])
      expect((await call(server, 'set_summary', { summary: 'x' }, byModel(one))).data).toMatchObject({
        error: { code: 'recipient_unavailable' },
      });
    expect(tables()).toEqual(before);
    expect(codex.starts()).toEqual([]);
    // The caller is who the host says all the same.
    expect((await call(other, 'message', intake(sent), {})).data).toMatchObject({ caller_session: one });
    await bind(session, one);
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: one }]);
  });

  it('[HOST-140] is refused to a model that names a foreign thread, and the server of a sub-agent is not bound', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    expect(await bind(session, two, byModel(one))).toMatchObject({
      isError: true,
      data: { error: { code: 'session_identity_conflict' } },
    });
    // The hooks of a sub-agent name the root thread, in the server of its own thread: no fault of theirs, and no binding.
    expect(await bind(session, two, byHook(one))).toEqual({ isError: false, data: {} });
    expect(await bind(session, one)).toEqual({ isError: false, data: {} });
    expect((await call(session, 'get_my_session_id', {}, {})).data).toMatchObject({ session_id: one });
  });

  it('[HOST-134, SES-015] gives the project of the thread’s directory, and never that of where the server runs', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    const refused = { error: { code: 'project_unavailable' } };
    expect((await call(session, 'receive_messages', {}, byModel(one))).data).toMatchObject(refused);
    await bind(session, one);
    const { data } = await call(session, 'get_my_session_id', {}, byModel(one));
    expect(data.project).toBe(await projectOfHome());
    const other = await open({ POSTBELL_LISTENER: 'off' });
    const folder = path.join(home.dir, 'other');
    mkdirSync(folder);
    await bind(other, two, byHook(two), folder);
    expect((await call(other, 'get_my_session_id', {}, byModel(two))).data.project).toMatch(/^other~/);
    // A directory as long as the system allows, and one character more.
    const third = await open({ POSTBELL_LISTENER: 'off' });
    expect(await bind(third, one, byHook(one), '/'.padEnd(4_097, 'x'))).toMatchObject({
      data: { error: { code: 'invalid_request' } },
    });
    expect(await bind(third, one, byHook(one), '/'.padEnd(4_096, '/'))).toEqual({ isError: false, data: {} });
  });

  it('to no place is refused, and leaves the server as it was: the next one binds it', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    const file = path.join(home.dir, 'file');
    writeFileSync(file, '');
    const { error } = {
      error: { code: 'invalid_request', message: expect.stringContaining('cwd'), details: { field: 'cwd' } },
    };
    for (const cwd of ['.', 'src', '../x', `${home.project}\0`, '\0', path.join(home.dir, 'gone'), file])
      expect([cwd, await bind(session, one, byHook(one), cwd)]).toMatchObject([
        cwd,
        { isError: true, data: { error } },
      ]);
    expect((await call(session, 'receive_messages', {}, byModel(one))).data).toMatchObject({
      error: { code: 'project_unavailable' },
    });
    expect(await bind(session, one)).toEqual({ isError: false, data: {} });
    expect((await call(session, 'get_my_session_id', {}, byModel(one))).data.project).toBe(
      await projectOfHome(),
    );
    // What it is bound to stays: a later word of the same hook changes and breaks nothing.
    expect(await bind(session, one, byHook(one), 'src')).toEqual({ isError: false, data: {} });
  });

  it('[HOST-141, INB-060] advertises no channel, whatever the variables say', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    expect(session.client.getServerCapabilities()).toEqual({ tools: {} });
    // As a child of Codex, with a variable that was meant for another host.
    const codex = path.join(home.dir, 'codex');
    copyFileSync(process.execPath, codex);
    const script = `require('child_process').spawn(${JSON.stringify(process.execPath)}, [${JSON.stringify(program)}, 'mcp'], { stdio: 'inherit' })`;
    const env = { ...bare, POSTBELL_CHANNELS: '1', POSTBELL_LISTENER: 'off' };
    const channelled = await openStarted(home, env, [codex, ['-e', script]], 'codex-mcp-client');
    expect(channelled.client.getServerCapabilities()).toEqual({ tools: {} });
    await channelled.close();
  });
});

describe('who calls', () => {
  it('[MSG-109, MSG-110] is the thread that Codex names, else nobody; the same call of another client is refused', async () => {
    const sent = await meant(one);
    const codex = await open({ POSTBELL_LISTENER: 'off' });
    const refused = { isError: true, data: { error: { code: 'intended_for_other_session' } } };
    expect(await call(codex, 'message', intake(sent), {})).toMatchObject(refused);
    expect(await call(codex, 'message', intake(sent), byModel(two))).toMatchObject(refused);
    const other = await open({ POSTBELL_LISTENER: 'off' }, 'some-other-client');
    expect(await call(other, 'message', intake(sent), byModel(one))).toMatchObject(refused);
    expect(await call(codex, 'message', { ...intake(sent), session: one }, byModel(one))).toMatchObject({
      data: { error: { code: 'invalid_request' } },
    });
    const { data } = await call(codex, 'message', intake(sent), byModel(one));
    expect(data).toMatchObject({ receipt_kind: 'intake', caller_session: one });
  });

  it('is one thread in whichever case it is named, also where nothing is bound', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    for (const thread of [one.toUpperCase(), one])
      for (const meta of [byModel(thread), byModel(two, thread)])
        expect((await call(session, 'get_my_session_id', {}, meta)).data).toMatchObject({
          session_id: one,
          principal_id: `codex-thread-${one}`,
        });
    const sent = await meant(one);
    const { data } = await call(session, 'message', intake(sent), byModel(one.toUpperCase()));
    expect(data).toMatchObject({ receipt_kind: 'intake', caller_session: one });
  });

  it('[HOST-138] a bound server refuses a foreign thread; a sub-agent acts for its root, and the receipt names it', async () => {
    const session = await open({ POSTBELL_LISTENER: 'off' });
    await bind(session, one);
    expect((await call(session, 'get_my_session_id', {}, byModel(two))).data).toMatchObject({
      error: { code: 'session_identity_conflict' },
    });
    const ofSubAgent = await open({ POSTBELL_LISTENER: 'off' });
    const sent = await meant(one);
    const { data } = await call(ofSubAgent, 'message', intake(sent), byModel(two, one));
    expect(data).toMatchObject({ caller_session: one, detail: expect.stringContaining(two) });
  });

  it('[SES-021, INB-143] makes no id for itself under Codex, where another client’s server does', async () => {
    const codex = await open();
    expect((await call(codex, 'get_my_session_id', {}, {})).isError).toBe(true);
    const other = await open({}, 'some-other-client');
    expect((await call(other, 'get_my_session_id', {}, {})).data.session_id).toMatch(/^[0-9a-f]{16}$/);
    expect([codex.stderr(), other.stderr()]).toEqual(['', expect.stringContaining('names no session id')]);
    const pinned = await open({ POSTBELL_SESSION: 'pinned', POSTBELL_LISTENER: 'off' });
    expect((await call(pinned, 'get_my_session_id', {}, byModel(one))).data).toMatchObject({
      session_id: 'pinned',
    });
    await bind(pinned, one);
    const { data } = await call(pinned, 'get_my_session_id', {}, byModel(one));
    expect([data.session_id, data.aliases]).toEqual([one, ['pinned']]);
  });
});

describe('standing in', () => {
  it('[HOST-160] 5 s after binding it registers the thread itself, where no companion has', async () => {
    const session = await open();
    await bind(session, one);
    const boundAt = performance.now();
    const project = await projectOfHome();
    const cards = await liveCards(home, project, 1);
    expect(performance.now() - boundAt).toBeGreaterThan(4_500);
    expect(cards).toMatchObject([
      { session_id: one, host_kind: 'codex', principal_id: `codex-thread-${one}` },
    ]);
    const words = ['message', 'send', '--project', project, '--sender', 'me', '--recipient', one];
    const more = ['--target-kind', 'session', '--idempotency-key', 'k', '--payload-stdin'];
    const sent = await answer(home.env, home.project, [...words, ...more], 'hello');
    expect(sent).toMatchObject({ native_delivery: { adapter_kind: 'codex-queue' } });
    expect((await call(session, 'set_summary', { summary: 'mending' }, byModel(one))).isError).toBe(false);
    expect(await liveCards(home, project, 1)).toMatchObject([{ work_summary: 'mending' }]);
    // A companion that starts later replaces it, and is who shows what the thread works on from then on.
    const started = { session_id: one, cwd: home.project, hook_event_name: 'SessionStart', source: 'resume' };
    const env = { ...bare, PLUGIN_ROOT: '/plugin' };
    const host = ['--host', 'codex'];
    expect(
      (await runHook(home, 'codex-session', { ...started, transcript_path: '/t' }, { env, host })).stderr,
    ).toBe('');
    const shown = async () => (await liveCards(home, project, 1))[0];
    expect(await shown()).toMatchObject({ session_id: one, generation: 2 });
    await until('it has made room', async () => {
      const { isError } = await call(session, 'set_summary', { summary: 'tidying' }, byModel(one));
      return !isError && (await shown())?.work_summary === 'tidying';
    });
    expect(await shown()).toMatchObject({ generation: 2 });
  });

  it('registers nobody where the owner’s config of the thread cannot be trusted', async () => {
    const hosts = path.join(home.env.POSTBELL_HOME as string, 'hosts');
    await projectOfHome();
    mkdirSync(hosts, { mode: 0o700 });
    writeFileSync(path.join(hosts, 'codex-session.json'), '{', { mode: 0o600 });
    const session = await open();
    await bind(session, one);
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    expect(await liveCards(home, await projectOfHome(), 0)).toEqual([]);
    const { data } = await call(session, 'get_my_session_id', {}, byModel(one));
    expect([data.session_id, data.principal_id]).toEqual([one, undefined]);
  });

  it('[HOST-199] ends within 250 ms of its end of input and a signal, and is registered no more', async () => {
    const session = await open();
    await bind(session, one);
    await liveCards(home, await projectOfHome(), 1);
    const began = performance.now();
    process.kill(session.pid, 'SIGTERM');
    const closing = session.close();
    await until('the server ends', () => !alive(session.pid), 2_000);
    // The host gives it 250 ms; the rest is what a busy machine takes to notice.
    expect(performance.now() - began).toBeLessThan(500);
    await closing;
    await liveCards(home, await projectOfHome(), 0);
  });
});
