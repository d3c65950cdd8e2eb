// Targets 11 and 12: what the router writes by itself (an attempt and an acceptance a delivery) with 32 deliveries in flight,
// beside single raw commits; and how many syncs of the disk that takes a record.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { attach, type BenchDesk, openDesk, sendOne } from './desk.ts';
import { median, type Outcome, type Plan, pause } from './metric.ts';
import { endAll, makeHome, startRouter } from './program.ts';
import { rawCommits } from './raw-commit.ts';

const inFlight = 32;
const sessions = 8;
/** The router writes two for each delivery. */
const recordsEach = 2;

export async function routerWrites(plan: Plan): Promise<Outcome[]> {
  const deliveries = plan.quick ? 640 : 3_200;
  const rates: number[] = [];
  const singles: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const { perSecond } = await oneRound(plan, `writes-${round}`, deliveries);
    rates.push(perSecond);
    singles.push(rawRate(path.join(plan.directory, `writes-raw-${round}`)));
  }
  const rate: Outcome = {
    id: '11',
    what: `records of the router, ${inFlight} deliveries in flight`,
    unit: 'a second',
    measured: median(rates),
    yardstick: { what: 'single raw commits', value: median(singles) },
    target: 2,
    stretch: 4,
    atLeast: true,
  };
  return [rate, await syncsOfRecords(plan)];
}

async function syncsOfRecords(plan: Plan): Promise<Outcome> {
  const id = '12';
  const what = `syncs a record of the router, ${inFlight} in flight`;
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
  } catch {
    return { id, what, why: 'needs strace' };
  }
  const log = path.join(plan.directory, 'router-syncs.log');
  const { during } = await oneRound(plan, 'syncs-router', 640, log);
  return { id, what, unit: 'a record', measured: during / (640 * recordsEach), target: 0.2, stretch: 0.05 };
}

async function oneRound({ directory, program }: Plan, name: string, deliveries: number, trace?: string) {
  const home = makeHome(directory, name);
  await startRouter(program, home, trace);
  const desk = await openDesk(home.directory, 'router');
  const attachments = Array.from({ length: sessions }, (_, nth) => attach(desk, `s${nth}`));
  await pause(500);
  const stored = await openDesk(home.directory, 'no router');
  const ids: string[] = [];
  for (let nth = 0; nth < deliveries; nth += 1)
    ids.push(await storeFor(stored, `s${nth % sessions}`, `key-${nth}`));
  stored.close();
  await pause(200);
  const syncs = (): number =>
    trace === undefined || !existsSync(trace)
      ? 0
      : readFileSync(trace, 'utf8')
          .split('\n')
          .filter((line) => /\bf(data)?sync\(/.test(line)).length;
  const before = syncs();
  const begun = performance.now();
  await inTurns(ids, async (delivery_id) => {
    const answer = await desk.router.notify({ project: 'p', delivery_id, wait: true });
    if (!answer.delivered) throw new Error(`not delivered: ${answer.reason}`);
  });
  const seconds = (performance.now() - begun) / 1_000;
  const during = syncs() - before;
  for (const attachment of attachments) await attachment.close();
  desk.close();
  await endAll();
  return { perSecond: (deliveries * recordsEach) / seconds, during };
}

/** Stored for the exact session; the sender is told that no router was asked. */
async function storeFor(desk: BenchDesk, recipient: string, key: string): Promise<string> {
  await sendOne(desk, { project: 'p', recipient, target_kind: 'session' }, key).catch(() => {});
  const found = desk.store.read((tx) => tx.messages.byIdempotencyKey('p', 'bench', key));
  const stored = found && desk.store.read((tx) => tx.messages.byId(found.message_id));
  if (stored === undefined) throw new Error('not stored');
  return stored.message.delivery_id;
}

/** Runs `work` over all, `inFlight` at a time. */
async function inTurns(all: readonly string[], work: (one: string) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let one = all[next++]; one !== undefined; one = all[next++]) await work(one);
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

function rawRate(directory: string): number {
  const raw = rawCommits(directory);
  const begun = performance.now();
  const commits = 2_000;
  for (let nth = 0; nth < commits; nth += 1) raw.commit();
  const seconds = (performance.now() - begun) / 1_000;
  raw.close();
  return commits / seconds;
}
