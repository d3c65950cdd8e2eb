// The states that a session can be in, and the roads by which each is rung: what is seen on the real program, written to
// docs/hosts.md where HOSTS_TABLE names that file. Only what was seen is asserted; the times are printed beside a
// yardstick of the same run, and gate nothing.

import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { runClaude, type StreamSession } from '../claude.ts';
import { describeWithClaude } from '../installed.ts';
import type { ModelRequest, Script } from '../model.ts';
import { type Office, openOffice } from '../office.ts';

let office: Office;
const rows: string[] = [];
/** The model takes its time with whatever it is told. */
let thinking = false;
let yardstickMs = 0;

/** Leaves mail alone, so that each road is seen; works where it is told to. */
const script: Script = ({ newest }) => {
  if (newest.includes('<summary>')) return { say: '<analysis>a</analysis>\n<summary>s</summary>' };
  if (newest.includes('work for long'))
    return { tools: [{ name: 'Bash', input: { command: 'sleep 2; echo worked', description: 'works' } }] };
  if (thinking || newest.includes('think for long')) return { sleepMs: 8_000, say: 'thought' };
  return { say: 'left alone' };
};

/** How the model saw it: as a notice of its own turn, beside a tool's result, at the end of a turn, or with a prompt. */
function seenIn(request: ModelRequest): string {
  const { messages } = request.body;
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const newest = JSON.stringify(messages.slice(last + 1));
  if (newest.includes('Stop hook feedback:\\nPostbell')) return 'at the end of the turn';
  if (newest.includes('tool_result')) return 'after the tool\u2019s result, same turn';
  if (newest.includes('[Postbell inbox notice]')) return 'a turn of its own';
  return newest.includes('waiting for') ? 'with the prompt' : 'not';
}

const roadOf = (text: string): string => {
  if (text.includes('[Postbell inbox notice]')) return 'listener';
  return text.includes('Stop hook feedback:\nPostbell') ? 'Stop gate' : 'line of a hook';
};

let sent = 0;
/** Sends to alice, and sees by which road, after how long and where the session was told. */
async function ring(session: string, withinMs = 10_000) {
  sent += 1;
  const before = office.model.requests.length;
  const began = Date.now();
  const { recipient_presence } = await office.send('alice', `mail ${sent}`);
  const told = (request: ModelRequest) =>
    request.session === session && /\[Postbell inbox notice\]|waiting for "alice"/.test(newestOf(request));
  const request = await office.model.waitFor(told, withinMs, before).catch(() => undefined);
  if (request === undefined)
    return { presence: recipient_presence, road: 'none', ms: undefined, seen: 'not yet' };
  return {
    presence: recipient_presence,
    road: roadOf(newestOf(request)),
    ms: request.at - began,
    seen: seenIn(request),
  };
}

function newestOf({ body: { messages } }: ModelRequest): string {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return JSON.stringify(messages.slice(last + 1))
    .replaceAll('\\n', '\n')
    .replaceAll('\\"', '"');
}

type Rung = Awaited<ReturnType<typeof ring>>;
const row = (state: string, { presence, road, ms, seen }: Rung): void => {
  const after = ms === undefined ? '' : `${ms} ms (${(ms / yardstickMs).toFixed(1)}x)`;
  rows.push(`| ${state} | ${presence} | ${road} | ${after} | ${seen} |`);
};

const results = (session: StreamSession) => session.events.filter(({ type }) => type === 'result').length;
/** Once no turn runs any more. */
async function quiet(session: StreamSession): Promise<void> {
  for (let before = -1; before !== results(session); await pause(700)) before = results(session);
}

describeWithClaude('each state', (version) => {
  beforeEach(async () => {
    office = await openOffice({ script });
  });
  afterEach(() => office.end());
  afterAll(() => {
    const table = [
      `Claude Code ${version}. A prompt typed by a person reaches the model after ${yardstickMs} ms here; times are of one run, from the`,
      'call of `send` to the request that the model got, and in multiples of that.',
      '',
      '| state of the session | sender is told | rung by | after | the model sees it |',
      '| --- | --- | --- | --- | --- |',
      ...rows,
    ].join('\n');
    console.log(table);
    const file = process.env.HOSTS_TABLE;
    if (file === undefined) return;
    const [head, , tail] = readFileSync(file, 'utf8').split(/(<!-- states -->[\s\S]*<!-- end of states -->)/);
    writeFileSync(file, `${head}<!-- states -->\n\n${table}\n\n<!-- end of states -->${tail}`);
  });

  it('that has a listener: fresh, idle, after /clear, resumed, forked, compacted', async () => {
    const fresh = await office.stream('alice');
    await office.reachable('alice');
    await pause(500);
    const first = await ring(fresh.sessionId());
    await quiet(fresh);
    const began = Date.now();
    const before = office.model.requests.length;
    fresh.say('a prompt of a person');
    yardstickMs =
      (await office.model.waitFor(({ session }) => session === fresh.sessionId(), 5_000, before)).at - began;
    await quiet(fresh);
    row('fresh: no prompt yet', first);
    expect(first).toMatchObject({ presence: 'live', road: 'listener', seen: 'a turn of its own' });
    await pause(31_000);
    await quiet(fresh);
    const idle = await ring(fresh.sessionId(), 40_000);
    row('idle after a turn', idle);
    expect(idle).toMatchObject({ presence: 'live', road: 'listener', seen: 'a turn of its own' });
  });

  it('that is another id, or comes back', async () => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    session.say('hello');
    await session.waitResult(1, 20_000);
    const old = session.sessionId();
    session.say('/clear');
    await expect.poll(() => session.sessionId() !== old, { timeout: 10_000 }).toBe(true);
    await pause(1_000);
    const cleared = await ring(session.sessionId());
    row('after /clear', cleared);
    expect(cleared).toMatchObject({ presence: 'live', road: 'listener', seen: 'a turn of its own' });
    await quiet(session);
    const id = session.sessionId();
    await session.end();
    await office.reachable('alice', 0);
    const gone = await office.send('alice', 'while it was away');
    expect(gone.recipient_presence).toBe('gone');
    const before = office.model.requests.length;
    const resumed = await office.stream('alice', '--resume', id);
    const woken = await office.model.waitFor(({ session: of }) => of === id, 40_000, before);
    rows.push(
      `| resumed, with mail from before | gone, when it was sent | ${roadOf(newestOf(woken))} | at its start | ${seenIn(woken)} |`,
    );
    expect(roadOf(newestOf(woken))).toBe('listener');
    await quiet(resumed);
    await resumed.end();
    const fork = await office.stream('alice', '--resume', id, '--fork-session');
    await office.reachable('alice');
    await quiet(fork);
    const forked = await ring(fork.sessionId(), 40_000);
    row('forked', forked);
    expect(forked.road).toBe('listener');
  });

  it('in a turn: with a tool running, thinking, compacted', async () => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    session.say('work for long');
    await office.model.waitFor(() => true, 10_000);
    await pause(500);
    const working = await ring(session.sessionId());
    row('in mid-turn, a tool running', working);
    expect(working).toMatchObject({ presence: 'live', seen: 'after the tool\u2019s result, same turn' });
    await quiet(session);
    await pause(31_000);
    await quiet(session);
    session.say('/compact');
    await quiet(session);
    const compacted = await ring(session.sessionId(), 40_000);
    row('compacted', compacted);
    expect(compacted.road).toBe('listener');
  });

  it('in print mode, and two sessions in one directory', async () => {
    await office.send('alice', 'for print mode');
    const run = await runClaude({ ...office.env, POSTBELL_RECIPIENT: 'alice' }, ['-p', 'hi'], office.project);
    expect(run.code).toBe(0);
    const seen = office.model.requests.map(newestOf).filter((text) => text.includes('waiting for "alice"'));
    expect(seen.length).toBeGreaterThan(0);
    rows.push(
      '| print mode (`claude -p`) | deaf, while it runs | lines of hooks | with its prompt | once with the prompt, once at the end of the turn |',
    );
    const [one, two] = [await office.stream('bob'), await office.stream('bob')];
    await office.reachable('bob', 2);
    await pause(500);
    const before = office.model.requests.length;
    const { recipient_presence } = await office.send('bob', 'for either');
    const both = [one, two].map((session) =>
      office.model
        .waitFor(({ session: id }) => id === session.sessionId(), 40_000, before)
        .catch(() => undefined),
    );
    const told = (await Promise.all(both)).filter((request) => request !== undefined);
    expect(told.length).toBe(2);
    rows.push(
      `| two sessions of one name in one directory | ${recipient_presence} | listener | | each in a turn of its own; whoever takes it in first has it |`,
    );
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'] as const)('whose host got %s', async (signal) => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    session.kill(signal);
    await session.exited;
    await office.reachable('alice', 0);
    const told = await office.send('alice', 'is anybody there');
    expect(told.recipient_presence).toBe('gone');
    rows.push(
      `| its host got ${signal} | gone | nobody | | by whoever resumes it, or the next session of the name |`,
    );
  });

  it('interrupted: a turn of a person, and one that a notice began', async () => {
    const session = await office.tty('alice');
    await office.reachable('alice');
    const id = session.startedAs as string;
    await session.type('think for long');
    await office.model.waitFor((request) => newestOf(request).includes('think for long'), 10_000);
    await pause(500);
    await session.press('Escape');
    await session.waitForScreen(/Interrupted/i, 10_000);
    const person = await ring(id);
    row('a person\u2019s turn was interrupted', person);
    expect(person.road).toBe('listener');
    await pause(31_000);
    thinking = true;
    const before = office.model.requests.length;
    await office.send('alice', 'begins a turn');
    await office.model.waitFor((request) => request.session === id, 40_000, before);
    await pause(700);
    await session.press('Escape');
    await pause(1_500);
    thinking = false;
    const notices = await ring(id, 40_000);
    row('a turn that a notice began was interrupted', notices);
    expect(notices.road).toBe('listener');
  });
});
