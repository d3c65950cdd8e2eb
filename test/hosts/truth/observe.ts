// One look: sends to a session, or to its name where that fails, and sees what each place says of it.

import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Env, factsOf, postbell } from '../../process/postbell.ts';
import {
  contradictions,
  type Fact,
  type Posted,
  reached,
  type Seen,
  type Sight,
  type Told,
  words,
} from './rules.ts';

/** What a model was sent, and did, from a mark on. */
export interface ModelView {
  mark(): number;
  since(mark: number): {
    /** What was new to it in each request: how it is told that there is mail. */
    told: string;
    /** All of it, results of its tools included. */
    all: string;
    /** The tools it called, each with what it gave or got. */
    calls: string[];
  };
}

/** Where the sender stands. */
export interface Place {
  env: Env;
  cwd: string;
  project: string;
}

export interface Who {
  session?: string;
  /** The id on its card, where it has had another since. */
  card?: string;
  name: string;
  deadMs?: number;
}

let sent = 0;

async function send(
  { env, cwd, project }: Place,
  recipient: string,
  kind: string,
): Promise<Told & { text: string }> {
  sent += 1;
  const text = `BODY-${process.pid}-${sent}-OF-IT`;
  const scope = ['--project', project, '--sender', 'truth', '--recipient', recipient, '--target-kind', kind];
  const words = ['message', 'send', ...scope, '--idempotency-key', text, '--payload-stdin'];
  const { code, stdout, stderr } = await postbell(env, cwd, words, text);
  if (code === 0) {
    const { message_id, recipient_presence, native_delivery } = JSON.parse(stdout);
    const answer = native_delivery?.status === 'native_accepted' ? 'accepted' : 'stored';
    return { answer, presence: recipient_presence, message_id, text };
  }
  const refused = /^postbell: (\w+): /.exec(stderr)?.[1] ?? `exit ${code}`;
  const reason = /\((\w+)\); the message is kept/.exec(stderr)?.[1];
  const message_id = /the message is kept as (\w+)/.exec(stderr)?.[1];
  return { answer: reason ?? refused, text, ...(message_id !== undefined && { message_id }) };
}

export async function discovered({ env, cwd, project }: Place, who: Who): Promise<Seen> {
  const { code, stdout } = await postbell(env, cwd, [
    'message',
    'discover',
    '--project',
    project,
    '--detail',
  ]);
  if (code !== 0) return { session: 'not known', name: [] };
  const cards = JSON.parse(stdout).cards as {
    session_id: string;
    principal_id: string;
    bell_state: { state: 'live' | 'deaf' };
  }[];
  const id = who.card ?? who.session;
  const own = cards.find(({ session_id }) => session_id === id);
  const ofName = cards.filter(({ principal_id }) => principal_id === who.name);
  return {
    session: own?.bell_state.state ?? 'absent',
    name: ofName.map(({ bell_state }) => bell_state.state),
  };
}

async function factsFor({ env, cwd, project }: Place, recipient: string, message_id: string | undefined) {
  if (message_id === undefined) return { facts: [] as Fact[] };
  const { state, receipts } = await factsOf(env, cwd, { project, recipient, message_id });
  return { facts: receipts as unknown as Fact[], state };
}

async function post(place: Place, recipient: string, kind: string) {
  const { text, ...told } = await send(place, recipient, kind);
  const { facts } = await factsFor(place, recipient, told.message_id);
  const posted: Posted = {
    told,
    atAnswer: facts.map(({ receipt_kind }) => receipt_kind),
    atEnd: facts,
    body: false,
    acknowledged: false,
  };
  return { posted, recipient, text };
}

const notice = '[Postbell inbox notice]';
const ranks = ['nothing', 'line', 'notice', 'body', 'took it in'];
const quietMs = 1_500;

/** What the model has seen and done by now. */
function update(
  sight: Sight,
  sends: Awaited<ReturnType<typeof post>>[],
  view: ReturnType<ModelView['since']>,
) {
  sight.fetched = view.calls.some((call) => call.startsWith('receive_messages'));
  const line = /\d+ messages? waiting for/.test(view.told);
  sight.notified = view.told.includes(notice) ? 'notice' : line ? 'line' : 'nothing';
  for (const { posted, text } of sends) {
    posted.body = view.all.includes(text);
    posted.acknowledged = view.calls.some(
      (call) =>
        call.startsWith('acknowledge_messages') && call.includes(posted.told.message_id ?? 'none at all'),
    );
  }
}

/** Sends, and looks until the model has seen what is expected, or long enough that it would have seen more. */
export async function look(
  place: Place,
  who: Who,
  model: ModelView,
  { until, withinMs = 25_000, after }: { until: string; withinMs?: number; after?: () => unknown },
): Promise<Sight> {
  const mark = model.mark();
  const seen = [await discovered(place, who)];
  const exact = who.session === undefined ? undefined : await post(place, who.session, 'session');
  const isTaken = exact !== undefined && ['accepted', 'stored'].includes(exact.posted.told.answer);
  const byName = isTaken ? undefined : await post(place, who.name, 'principal');
  seen.push(await discovered(place, who));
  await after?.();
  const sends = [exact, byName].filter((one) => one !== undefined);
  const sight: Sight = {
    ...(exact && { exact: exact.posted }),
    ...(byName && { byName: byName.posted }),
    seen,
    fetched: false,
    notified: 'nothing',
    ...(who.deadMs !== undefined && { deadMs: who.deadMs }),
  };
  const rank = (word: string): number => ranks.indexOf(word);
  for (const end = Date.now() + withinMs; Date.now() < end; await pause(100)) {
    update(sight, sends, model.since(mark));
    if (rank(reached(sight)) >= rank(until)) break;
  }
  // More than is expected would come now; a call of its tools is written down before it has its answer.
  await pause(until === 'took it in' ? 300 : quietMs);
  update(sight, sends, model.since(mark));
  for (const { posted, recipient } of sends) {
    const { facts, state } = await factsFor(place, recipient, posted.told.message_id);
    posted.atEnd = facts;
    if (state !== undefined) posted.state = state;
  }
  seen.push(await discovered(place, who));
  return sight;
}

/** Looks, and holds what is seen against the rules and against the cell. */
export async function expectCell(
  expected: string,
  place: Place,
  who: Who,
  model: ModelView,
  more: { withinMs?: number; after?: () => unknown } = {},
): Promise<string> {
  const until = expected.split(' / ').at(-1) as string;
  const sight = await look(place, who, model, { until, ...more });
  const said = words(sight);
  expect({ said, contradictions: contradictions(sight), sight }).toMatchObject({
    said: expected,
    contradictions: [],
  });
  return said;
}
