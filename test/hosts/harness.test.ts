// The harness itself, against the real host: each helper is shown to tell the truth, and host facts that the product
// leans on are pinned.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claudeHome, type StreamSession, streamSession, ttySession } from './claude.ts';
import { describeWithClaude } from './installed.ts';
import { type Model, type Script, startModel } from './model.ts';
import { type Hook, installProbePlugin, probeHook } from './plugin.ts';
import type { Env } from './terminal.ts';

const echo = 'mcp__plugin_probe_echo__echo';
/**
 * The rule for all tools of the plugin's server; as `permissions.allow` of settings.json or after `--allowedTools` it lets
 * them run unasked in `-p` and in a terminal, in its default mode (auto) and in manual. Without it `-p` denies the call,
 * and a terminal asks: auto mode's own check cannot be had offline.
 */
const allowEcho = 'mcp__plugin_probe_echo';

let dir: string;
let project: string;
let script: Script;
let model: Model;
const ending: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  dir = mkdtempSync(path.join(tmpdir(), 'hosts-'));
  project = path.join(dir, 'project');
  script = () => undefined;
  model = await startModel((turn) => script(turn));
});

afterEach(async () => {
  const ends = await Promise.allSettled([...ending.splice(0).map((end) => end()), model.close()]);
  rmSync(dir, { recursive: true });
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
});

const home = (settings = {}): Env => claudeHome({ dir, modelUrl: model.url, project, settings });

function stream(env: Env, ...args: string[]): StreamSession {
  const session = streamSession(env, project, args);
  ending.push(session.end);
  return session;
}

interface Note {
  event: string;
  why: string;
  session: string;
  host: number;
}

/** What the recording hooks noted so far, oldest first. */
function notes(): Note[] {
  const file = path.join(dir, 'notes.jsonl');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Note);
}

const recorder = () => [probeHook('recorder', path.join(dir, 'notes.jsonl'))];
const waiter = () => [probeHook('waiter', path.join(dir, 'mail'), { asyncRewake: true, timeout: 60 })];

describeWithClaude('Claude Code harness', () => {
  it('answers a stream session by script, under the id that the harness chose', async () => {
    script = ({ newest, requestNumber, hasTools }) => {
      expect(hasTools).toBe(true);
      return newest.includes('marco') ? { say: `polo ${requestNumber}` } : undefined;
    };
    const session = stream(home());
    const id = session.sessionId();
    session.say('marco');
    expect((await session.waitResult(1, 20_000)).result).toBe('polo 1');
    session.say('else');
    expect((await session.waitResult(2, 20_000)).result).toBe('ok');
    expect(session.events.find(({ subtype }) => subtype === 'init')?.session_id).toBe(id);
    expect(session.sessionId()).toBe(id);
    expect(model.requestsOf(id)).toHaveLength(2);
    expect(model.text(model.requestsOf(id)[1]!)).toContain('polo 1');
    session.closeInput();
    expect(await session.exited).toEqual({ code: 0, signal: null });
    expect(session.living()).toEqual([]);
    await expect(session.waitResult(3, 20_000)).rejects.toThrow('the host ended with 0');
  });

  it('wakes a stream session before any prompt, by an asyncRewake hook of an installed plugin', async () => {
    script = ({ newest }) => (newest.includes('LETTER-7') ? { say: 'woken' } : undefined);
    const env = home();
    await installProbePlugin(env, path.join(dir, 'market'), { SessionStart: waiter() });
    const session = stream(env);
    await session.waitFor((event) => event.subtype === 'hook_started', 20_000);
    expect(model.requests).toHaveLength(0);
    writeFileSync(path.join(dir, 'mail'), 'LETTER-7');
    expect((await session.waitResult(1, 20_000)).result).toBe('woken');
    expect(model.requestsOf(session.sessionId())).toHaveLength(1);
  });

  it('wakes a terminal session before any prompt, and types into it', async () => {
    script = ({ newest }) =>
      newest.includes('LETTER-8')
        ? { say: 'woken-8' }
        : newest.includes('marco')
          ? { say: 'polo-8' }
          : undefined;
    const env = home();
    await installProbePlugin(env, path.join(dir, 'market'), { SessionStart: [...waiter(), ...recorder()] });
    const session = await ttySession(env, project);
    ending.push(session.end);
    await session.waitForScreen(/❯/, 20_000);
    await expect.poll(notes, { timeout: 10_000 }).toHaveLength(1);
    expect(notes()[0]).toEqual({
      event: 'SessionStart',
      why: 'startup',
      session: session.startedAs,
      host: session.pid,
    });
    writeFileSync(path.join(dir, 'mail'), 'LETTER-8');
    await session.waitForScreen(/woken-8/, 20_000);
    await session.type('marco');
    await session.waitForScreen(/polo-8/, 20_000);
    expect(model.requestsOf(session.startedAs!).length).toBeGreaterThanOrEqual(2);
    await session.type('/exit');
    await session.waitForScreen(new RegExp(`claude --resume ${session.startedAs}`), 20_000);
    await expect.poll(() => session.living(), { timeout: 5000 }).toEqual([]);
    expect(await session.end()).toEqual([]);
  });

  it('runs a tool of a plugin server without asking, by a rule in settings or by --allowedTools', async () => {
    script = ({ newest, toolResults: [result] }) => {
      if (result) return { say: `${result.name} gave ${result.text}` };
      return newest.includes('call it') ? { tools: [{ name: echo, input: { text: 'hi' } }] } : undefined;
    };
    const answer = `${echo} gave echo: hi`;
    const env = home();
    await installProbePlugin(env, path.join(dir, 'market'), { Stop: recorder() });
    const run = async (...args: string[]) => {
      const session = stream(env, ...args);
      session.say('call it');
      const { result } = await session.waitResult(1, 20_000);
      return {
        result,
        denied: session.events.filter(({ subtype }) => subtype === 'permission_denied').length,
      };
    };
    expect((await run()).denied).toBe(1);
    expect(await run('--allowedTools', allowEcho)).toEqual({ result: answer, denied: 0 });
    home({ permissions: { allow: [allowEcho] } });
    expect(await run()).toEqual({ result: answer, denied: 0 });
    const terminal = await ttySession(env, project);
    ending.push(terminal.end);
    await terminal.waitForScreen(/❯/, 20_000);
    await terminal.type('call it');
    expect(await terminal.waitForScreen(/gave echo: hi/, 20_000)).toContain('auto mode on');
    // The tool is deferred, so not in the list of any request; called by its full name it runs all the same.
    expect(model.requests.flatMap(({ body }) => body.tools ?? []).map(({ name }) => name)).not.toContain(
      echo,
    );
  });

  it('keeps the session id over /compact and --resume, and gives a new one by /clear and --fork-session', async () => {
    script = ({ newest }) =>
      newest.includes('<summary>') ? { say: '<analysis>a</analysis>\n<summary>s</summary>' } : undefined;
    const env = home();
    const events = ['SessionStart', 'SessionEnd', 'PreCompact', 'PostCompact', 'UserPromptSubmit'];
    const hooks = Object.fromEntries(events.map((event) => [event, recorder()]));
    await installProbePlugin(env, path.join(dir, 'market'), hooks);

    const session = stream(env);
    const first = session.sessionId();
    // Each command has a result as well.
    for (const [n, text] of ['one', '/compact', '/clear', 'two'].entries()) {
      session.say(text);
      await session.waitResult(n + 1, 20_000);
    }
    const second = session.sessionId();
    session.closeInput();
    await session.exited;
    const resumed = stream(env, '--resume', second);
    resumed.say('three');
    await resumed.waitResult(1, 20_000);
    expect(resumed.sessionId()).toBe(second);
    resumed.closeInput();
    await resumed.exited;
    const forked = stream(env, '--resume', second, '--fork-session');
    // SessionStart is enough to know the id: no prompt was given.
    await forked.waitFor((event) => event.hook_event === 'SessionStart', 20_000);
    const third = forked.sessionId();
    forked.closeInput();
    await forked.exited;

    expect(new Set([first, second, third]).size).toBe(3);
    const told = (host: StreamSession) =>
      notes()
        .filter((note) => note.host === host.pid)
        .map((note) => [note.event, note.why, note.session]);
    expect(told(session)).toEqual([
      ['SessionStart', 'startup', first],
      ['UserPromptSubmit', '', first],
      ['PreCompact', '', first],
      ['SessionStart', 'compact', first],
      ['PostCompact', '', first],
      ['SessionEnd', 'clear', first],
      ['SessionStart', 'clear', second],
      ['UserPromptSubmit', '', second],
      ['SessionEnd', 'other', second],
    ]);
    expect(told(resumed)).toEqual([
      ['SessionStart', 'resume', second],
      ['UserPromptSubmit', '', second],
      ['SessionEnd', 'other', second],
    ]);
    expect(told(forked)).toEqual([
      ['SessionStart', 'fork', third],
      ['SessionEnd', 'other', third],
    ]);
  });

  it('finds and ends what a killed host left', async () => {
    const env = home();
    const sleeper: Hook = {
      type: 'command',
      command: 'node',
      args: ['-e', 'setInterval(() => {}, 1000)'],
      asyncRewake: true,
    };
    await installProbePlugin(env, path.join(dir, 'market'), { SessionStart: [sleeper] });
    const session = stream(env);
    await session.waitFor((event) => event.subtype === 'hook_started', 20_000);
    session.say('one');
    await session.waitResult(1, 20_000);
    session.kill('SIGKILL');
    expect(await session.exited).toEqual({ code: null, signal: 'SIGKILL' });
    // The MCP server ends with its input; the hook stays.
    await expect.poll(session.living, { timeout: 5000 }).toHaveLength(1);
    const [orphan] = session.living();
    expect(await session.end(0)).toEqual([orphan]);
    expect(session.living()).toEqual([]);
  });
});

describeWithClaude('what the model server is', () => {
  it('the model server answers what hosts ask beside their turns', async () => {
    const post = async (url: string, body: object) => {
      const answer = await fetch(model.url + url, { method: 'POST', body: JSON.stringify(body) });
      return { status: answer.status, text: await answer.text() };
    };
    const messages = [{ role: 'user', content: 'hello' }];
    script = ({ newest, hasTools }) =>
      newest === 'fail' ? { status: 529 } : { say: `tools: ${hasTools}`, tools: [{ name: 'x', input: {} }] };
    expect((await fetch(`${model.url}/api/hello`, { method: 'HEAD' })).status).toBe(200);
    expect((await post('/v1/messages/count_tokens', { messages })).text).toContain('input_tokens');
    const whole = JSON.parse((await post('/v1/messages', { messages })).text) as { content: object[] };
    expect(whole.content).toEqual([{ type: 'text', text: 'tools: false' }]);
    const streamed = await post('/v1/messages?beta=true', { messages, tools: [{ name: 'x' }], stream: true });
    expect(streamed.text).toContain('event: message_stop');
    expect(streamed.text).toContain('"stop_reason":"tool_use"');
    expect((await post('/v1/messages', { messages: [{ role: 'user', content: 'fail' }] })).status).toBe(529);
    expect((await model.waitFor(({ body }) => body.stream === true, 0)).session).toBe('');
    await expect(model.waitFor(() => false, 50)).rejects.toThrow('waited 50 ms, 3 came');
  });
});
