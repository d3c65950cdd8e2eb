// Real processes, killed with -9 in the middle of every hop, hundreds of times.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Started } from '../process/home.ts';
import { until } from '../process/home.ts';
import { alive } from '../process/postbell.ts';
import { clearInbox, type Desk, type Hop, hopOf, type Office, openOffice, readInbox } from './office.ts';

const killsMin = Number(process.env.POSTBELL_KILLS ?? 500);
const perHopMin = Math.min(20, Math.floor(killsMin / 10));
const commands = ['send', 'receive', 'acknowledge'] as const;
const handOffs = ['dispatch', 'ring', 'print'] as const;
const hops = [...commands, ...handOffs];
const sessions = ['s0', 's1'];
const others = ['s2', 's3'];

const histogram: Record<Hop, number> = {
  send: 0,
  dispatch: 0,
  ring: 0,
  print: 0,
  receive: 0,
  acknowledge: 0,
  none: 0,
};
const killed: Record<string, number> = {};
let office: Office;

const total = (): number => Object.values(killed).reduce((sum, count) => sum + count, 0);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const upTo = (ms: number): number => Math.random() * ms;
const enough = (): boolean => total() >= killsMin && hops.every((hop) => histogram[hop] >= perHopMin);

beforeAll(async () => {
  office = await openOffice();
});
afterAll(async () => {
  await office.home.end();
  process.stderr.write(
    `${total()} kills: ${JSON.stringify(killed)}; in flight: ${JSON.stringify(histogram)}\n`,
  );
});

/** SIGKILL, counted under the kind of its process and the hop that was in flight. */
async function kill(process_: Started, kind: string, hop: () => Hop): Promise<void> {
  if (process_.child.exitCode !== null || process_.child.signalCode !== null) return;
  process_.child.kill('SIGKILL');
  await process_.exited;
  killed[kind] = (killed[kind] ?? 0) + 1;
  histogram[hop()] += 1;
}

let keys = 0;
const nextKey = (): string => `key-${keys++}`;

/** A send that may be killed; what it answered before counts. */
function startSend(name: string): Started & { done: Promise<void> } {
  const process_ = office.home.start(office.sendWords(name, nextKey()));
  process_.child.stdin?.end('body');
  const done = process_.exited.then(() => {
    const id = /"message_id":"([^"]+)"/.exec(process_.stdout())?.[1];
    if (id !== undefined) office.facts.answered.add(id);
  });
  return { ...process_, done };
}

/** Kills a command at some moment before it has answered. */
async function killCommand(process_: Started, kind: (typeof commands)[number]): Promise<void> {
  await pause(15 + upTo(60));
  const answered = process_.stdout() !== '';
  await kill(process_, kind, () => (answered ? 'none' : kind));
}

/** Waits until the newest message of the session has come this far; false where it has gone past or takes too long. */
async function reaches(name: string, hop: Hop, ms = 1_500): Promise<boolean> {
  const until_ = Date.now() + ms;
  while (Date.now() < until_) {
    if (hopOf(office, name) === hop) return true;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return false;
}

/** A process that was started by another of this home. */
async function killRouter(hop: () => Hop): Promise<void> {
  const pid = office.routerPid();
  if (!alive(pid)) return;
  process.kill(pid, 'SIGKILL');
  await until('the router has died', () => !alive(pid));
  killed.router = (killed.router ?? 0) + 1;
  histogram[hop()] += 1;
}

/** Kills who has the message in hand, at the hop that is wanted: while nobody else can write, it stays there. */
async function killInFlight(desk: Desk, wanted: 'dispatch' | 'ring' | 'print'): Promise<void> {
  await clearInbox(office, desk.name);
  const hop = (): Hop => hopOf(office, desk.name);
  const sending = startSend(desk.name);
  if (await reaches(desk.name, wanted))
    await office.hold(async () => {
      if (hop() !== wanted) return;
      await pause(upTo(20));
      if (wanted === 'print') await kill(desk.listener, 'wait', hop);
      else if (wanted === 'dispatch' || Math.random() < 0.3) await killRouter(hop);
      else await kill(desk.server, 'mcp', hop);
    });
  await sending.done;
}

/** Whatever has died or ended is started again, as its host would. */
async function mend(desk: Desk): Promise<void> {
  const ended = ({ child }: Started): boolean => child.exitCode !== null || child.signalCode !== null;
  if (ended(desk.server)) desk.server = office.startServer(desk.name);
  if (ended(desk.listener)) desk.listener = office.startListener(desk.name);
}

/**
 * The session is registered with its bell, so that a hand-off can be in flight. A server asks again after 5 s at most; where
 * others kill the next router meanwhile, after several times that.
 */
const connected = (name: string): Promise<void> =>
  until(
    `${name} is connected`,
    () =>
      office.reader
        .prepare('SELECT 1 FROM connection WHERE session_id = ? AND disconnected_at IS NULL AND bell <> ?')
        .get(name, 'none') !== undefined,
    60_000,
  );

/** The one that was seen least. */
const rarest = <H extends Hop>(of: readonly H[]): H =>
  [...of].sort((a, b) => histogram[a] - histogram[b])[0] as H;

async function turnOf(name: string, hop: (typeof commands)[number]): Promise<void> {
  if (hop === 'send') {
    const sending = startSend(name);
    await killCommand(sending, 'send');
    await sending.done;
  } else if (hop === 'receive') {
    await killCommand(office.home.start(office.inboxWords('receive', name)), 'receive');
  } else {
    const mail = readInbox(office, name);
    const process_ = office.home.start([...office.inboxWords('acknowledge', name), '--receipts-stdin']);
    process_.child.stdin?.end(JSON.stringify(mail.map(({ receipt }) => receipt)));
    await killCommand(process_, 'acknowledge');
  }
}

/** A session whose router, server and listener die in the middle of hand-offs. */
async function sessionLane(desk: Desk): Promise<void> {
  while (!enough()) {
    await mend(desk);
    const hop = rarest(handOffs);
    if (histogram[hop] >= perHopMin) await turnOf(desk.name, rarest(commands));
    else {
      await connected(desk.name);
      await killInFlight(desk, hop);
    }
  }
  await mend(desk);
}

/** People and scripts whose commands die. */
async function commandLane(name: string): Promise<void> {
  const missing = (): boolean =>
    total() < killsMin - handOffs.length * perHopMin || commands.some((hop) => histogram[hop] < perHopMin);
  while (missing()) await turnOf(name, rarest(commands));
}

describe('everything that is killed', () => {
  it(`[MSG-136, INB-109] loses nothing that was answered, in ${killsMin} kills over every hop`, async () => {
    const desks = sessions.map((name) => office.openDesk(name));
    for (const { name } of desks) await connected(name);
    await Promise.all([...desks.map(sessionLane), ...others.map(commandLane)]);
    const { facts, reader } = office;
    for (const name of [...sessions, ...others]) await clearInbox(office, name);
    const stored = new Set(reader.prepare('SELECT message_id FROM message').pluck().all() as string[]);
    expect([...facts.answered].filter((id) => !stored.has(id))).toEqual([]);
    expect(facts.answered.size).toBeGreaterThan(perHopMin);
    expect(facts.broken).toEqual([]);
    const lost = [...facts.answered].filter((id) => !facts.acknowledged.has(id) && !isTakenIn(id));
    expect(lost).toEqual([]);
    expect([...facts.printed].filter(([, times]) => times > 2)).toEqual([]);
    const doubled = `SELECT delivery_id FROM receipt WHERE receipt_kind IN ('intake', 'ack') GROUP BY delivery_id, receipt_kind
      HAVING count(*) > 1`;
    expect(reader.prepare(doubled).all()).toEqual([]);
    const left = `SELECT count(*) AS n FROM attempt a JOIN connection c USING (connection_id)
      WHERE a.state = 'started' AND c.disconnected_at IS NOT NULL`;
    expect(reader.prepare(left).get()).toEqual({ n: 0 });
    expect(total()).toBeGreaterThanOrEqual(killsMin);
    for (const hop of hops) expect(`${hop} ${histogram[hop] >= perHopMin}`).toBe(`${hop} true`);
  }, 420_000);

  it('goes on afterwards: the next message wakes', async () => {
    const desk = office.openDesk('s-last');
    await connected('s-last');
    await startSend('s-last').done;
    expect((await desk.listener.exited).code).toBe(2);
    expect(desk.listener.stderr()).toContain('1 message waits');
  }, 60_000);
});

/** By a command that was killed before it could answer. */
function isTakenIn(message_id: string): boolean {
  const intake = `SELECT 1 FROM receipt r JOIN delivery d USING (delivery_id)
    WHERE d.message_id = ? AND r.receipt_kind = 'intake'`;
  return office.reader.prepare(intake).get(message_id) !== undefined;
}
