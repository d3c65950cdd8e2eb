// The states that a session can be in, and the roads by which each is rung: what is seen on the real program, written to
// docs/hosts.md where HOSTS_TABLE names that file. Only what was seen is asserted; the times are printed beside a
// yardstick of the same run, and gate nothing.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { answer, program } from '../../process/postbell.ts';
import { runClaude, type StreamSession } from '../claude.ts';
import { describeWithClaude } from '../installed.ts';
import type { ModelRequest, Script } from '../model.ts';
import { installPlugin, marketWith, type Office, openOffice, renewing } from '../office.ts';

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

const notice = '[Postbell inbox notice]';
const block = 'Stop hook feedback:\nPostbell';

/** By what the session was told last. An interrupted turn leaves what it was told before. */
const roadOf = (text: string): string => {
  const [rung, blocked] = [text.lastIndexOf(notice), text.lastIndexOf(block)];
  if (rung < 0 && blocked < 0) return 'line of a hook';
  return rung > blocked ? 'listener' : 'Stop gate';
};

/** How the model saw it: as a turn of its own, beside a tool's result, at the end of a turn, or with a prompt. */
function seenIn(text: string): string {
  const road = roadOf(text);
  if (road === 'Stop gate') return 'at the end of the turn';
  if (text.includes('"tool_result"')) return 'after the tool\u2019s result, same turn';
  return road === 'listener' ? 'a turn of its own' : 'with the prompt';
}

let sent = 0;
/** Sends to alice, and sees by which road, after how long and where the session was told. */
async function ringOnce(session: string) {
  sent += 1;
  const before = office.model.requests.length;
  const began = Date.now();
  const { recipient_presence } = await office.send('alice', `mail ${sent}`);
  const told = (request: ModelRequest) =>
    request.session === session && /\[Postbell inbox notice\]|waiting for "alice"/.test(newestOf(request));
  const request = await office.model.waitFor(told, 15_000, before).catch(() => undefined);
  await takeIn();
  if (request === undefined)
    return { presence: recipient_presence, road: 'none', ms: Number.NaN, seen: 'not yet' };
  return {
    presence: recipient_presence,
    road: roadOf(newestOf(request)),
    ms: request.at - began,
    seen: seenIn(newestOf(request)),
  };
}

/** Somebody else of the name reads the mail, so that nothing is reserved for it any more. */
async function takeIn(): Promise<void> {
  const words = ['--recipient', 'alice'];
  const { messages } = await answer(office.env, office.project, ['inbox', 'receive', ...words]);
  const receipts = (messages as { receipt: object }[]).map(({ receipt }) => receipt);
  if (receipts.length === 0) return;
  const take = ['inbox', 'acknowledge', ...words, '--receipts-stdin'];
  await answer(office.env, office.project, take, JSON.stringify(receipts));
}

/** The median of three, each of which must be as the others. */
async function ring(session: string, between: () => Promise<unknown>, times = 3): Promise<Rung> {
  const all: Rung[] = [];
  for (let nth = 0; nth < times; nth += 1) {
    all.push(await ringOnce(session));
    await between();
  }
  const { ms: _, ...first } = all[0] as Rung;
  expect(all.map(({ presence, road, seen }) => ({ presence, road, seen }))).toEqual(all.map(() => first));
  return all.toSorted((a, b) => a.ms - b.ms)[all.length >> 1] as Rung;
}

function newestOf({ body: { messages } }: ModelRequest): string {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return JSON.stringify(messages.slice(last + 1))
    .replaceAll('\\n', '\n')
    .replaceAll('\\"', '"');
}

type Rung = Awaited<ReturnType<typeof ringOnce>>;
const row = (state: string, { presence, road, ms, seen }: Rung): void => {
  const after = `${ms} ms (${(ms / yardstickMs).toFixed(1)}x)`;
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

  it('fresh, and idle', async () => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    await pause(500);
    const fresh = await ring(session.sessionId(), () => quiet(session), 1);
    const began = Date.now();
    const before = office.model.requests.length;
    session.say('a prompt of a person');
    const prompted = await office.model.waitFor(
      ({ session: id }) => id === session.sessionId(),
      5_000,
      before,
    );
    yardstickMs = prompted.at - began;
    await quiet(session);
    row('fresh: no prompt yet', fresh);
    const idle = await ring(session.sessionId(), () => quiet(session));
    row('idle after a turn', idle);
    for (const one of [fresh, idle])
      expect(one).toMatchObject({ presence: 'live', road: 'listener', seen: 'a turn of its own' });
  });

  it('another id, or back again: /clear, resumed, forked, compacted', async () => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    session.say('hello');
    await session.waitResult(1, 20_000);
    session.say('/compact');
    await quiet(session);
    row('compacted', await ring(session.sessionId(), () => quiet(session)));
    await session.end();
    await office.reachable('alice', 0);
    const cleared = await office.stream('alice');
    await office.reachable('alice');
    const old = cleared.sessionId();
    cleared.say('/clear');
    await expect.poll(() => cleared.sessionId() !== old, { timeout: 10_000 }).toBe(true);
    await pause(1_000);
    // No listener of a session prints more than five times a minute.
    row('after /clear', await ring(cleared.sessionId(), () => quiet(cleared), 2));
    const id = cleared.sessionId();
    cleared.say('hello');
    await quiet(cleared);
    await cleared.end();
    await office.reachable('alice', 0);
    const resumed = await office.stream('alice', '--resume', id);
    await office.reachable('alice');
    await pause(500);
    row('resumed', await ring(id, () => quiet(resumed), 2));
    await resumed.end();
    await office.reachable('alice', 0);
    const fork = await office.stream('alice', '--resume', id, '--fork-session');
    await office.reachable('alice');
    await pause(500);
    row('forked', await ring(fork.sessionId(), () => quiet(fork)));
    const seen = rows.filter((line) => /compacted|clear|resumed|forked/.test(line));
    expect(seen).toHaveLength(4);
    for (const line of seen) expect(line).toMatch(/\| live \| listener \| .* \| a turn of its own \|$/);
    await office.send('alice', 'that stays');
    await quiet(fork);
    await fork.end();
    await office.reachable('alice', 0);
    const gone = await office.send('alice', 'while it was away');
    const before = office.model.requests.length;
    await office.stream('alice', '--resume', id);
    const woken = await office.model.waitFor(({ session: of }) => of === id, 40_000, before);
    rows.push(
      `| closed, then resumed | ${gone.recipient_presence} | ${roadOf(newestOf(woken))} | at its start | ${seenIn(newestOf(woken))} |`,
    );
    expect([gone.recipient_presence, roadOf(newestOf(woken))]).toEqual(['gone', 'listener']);
  });

  it('in mid-turn', async () => {
    const session = await office.stream('alice');
    await office.reachable('alice');
    const begin = async () => {
      await quiet(session);
      const before = office.model.requests.length;
      session.say('work for long');
      await office.model.waitFor(() => true, 10_000, before);
      await pause(400);
    };
    await begin();
    const working = await ring(session.sessionId(), begin);
    row('in mid-turn, a tool of 2 s running', working);
    expect(working).toMatchObject({ presence: 'live', seen: 'after the tool\u2019s result, same turn' });
  });

  it('idle past the renewal', async () => {
    await office.end();
    office = await openOffice({ market: undefined, script });
    Object.assign(office.env, { POSTBELL_BIN: program });
    await installPlugin(office.env, marketWith(path.join(office.dir, 'market'), renewing), office.project);
    const session = await office.stream('alice');
    await office.reachable('alice');
    await session.waitResult(2, 20_000);
    const renewed = await ringOnce(session.sessionId());
    row('idle past the renewal (at 3 s)', renewed);
    expect(renewed).toMatchObject({ presence: 'live', road: 'listener' });
  });

  it('in print mode, and two sessions in one directory', async () => {
    await office.send('alice', 'for print mode');
    const run = await runClaude({ ...office.env, POSTBELL_RECIPIENT: 'alice' }, ['-p', 'hi'], office.project);
    expect(run.code).toBe(0);
    const seen = office.model.requests.map(newestOf).filter((text) => text.includes('waiting for "alice"'));
    expect(seen.length).toBeGreaterThan(0);
    rows.push(
      '| print mode (`claude -p`) | deaf, while it runs | lines of hooks | with its prompt | with the prompt, and once at the end of the turn |',
    );
    const [one, two] = [await office.stream('bob'), await office.stream('bob')];
    await office.reachable('bob', 2);
    await pause(500);
    const before = office.model.requests.length;
    const { recipient_presence } = await office.send('bob', 'for either');
    const both = [one, two].map((session) =>
      office.model
        .waitFor(({ session: id }) => id === session.sessionId(), 10_000, before)
        .catch(() => undefined),
    );
    expect((await Promise.all(both)).filter((request) => request !== undefined)).toHaveLength(2);
    rows.push(
      `| two sessions of one name in one directory | ${recipient_presence} | listener of each | as idle | each in a turn of its own; whoever takes it in first has it |`,
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
    const interrupt = async () => {
      await pause(700);
      await session.press('Escape');
      await pause(1_500);
    };
    await session.type('think for long');
    await office.model.waitFor((request) => newestOf(request).includes('think for long'), 10_000);
    await interrupt();
    const person = await ringOnce(id);
    row('after a person\u2019s turn was interrupted', person);
    expect(person.road).toBe('listener');
    await pause(2_000);
    thinking = true;
    const before = office.model.requests.length;
    await office.send('alice', 'begins a turn');
    await office.model.waitFor((request) => request.session === id, 20_000, before);
    await interrupt();
    thinking = false;
    await takeIn();
    const notices = await ringOnce(id);
    row('after a turn that a notice began was interrupted', notices);
    expect(notices.road).toBe('listener');
  });
});
