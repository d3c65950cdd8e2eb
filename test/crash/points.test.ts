// Every statement fails once, and the process dies at every write point: nothing half-done is ever left, nothing that was
// answered is lost, and the same action carries on from there.

import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Fault, isRefusal } from '../../src/protocol/errors.ts';
import { openStore } from '../../src/store/open.ts';
import { FakeClock, seededRandom } from '../contract/clock.ts';
import { temporaryDirectory } from '../contract/desk.ts';
import { type Action, actions } from './actions.ts';
import { Crash, copyStore, dumpOf, openStage, type Stage } from './stage.ts';

const tested = { statements: { points: 0, held: 0 }, crashes: { points: 0, held: 0 } };
afterAll(() => {
  const { statements, crashes } = tested;
  process.stderr.write(`failing statements: ${statements.held} of ${statements.points} points\n`);
  process.stderr.write(`deaths at a write: ${crashes.held} of ${crashes.points} points\n`);
});

/** An arranged stage; statements and write points are counted from here. */
async function arranged(action: Action): Promise<Stage> {
  const file = path.join(temporaryDirectory(), 'postbell.db');
  const store = await openStore({ path: file, clock: new FakeClock(), random: seededRandom(1) });
  store.close();
  const stage = openStage(file);
  await action.arrange(stage);
  stage.database.statements = 0;
  stage.database.writePoints = 0;
  return stage;
}

/** The action to its end, with time passing as it needs. */
async function perform(action: Action, stage: Stage): Promise<unknown> {
  let settled = false;
  const outcome = Promise.resolve()
    .then(() => action.act(stage))
    .catch((error: unknown) => error)
    .finally(() => {
      settled = true;
    });
  await stage.clock.advance(0);
  for (let seconds = 0; !settled && seconds < 200; seconds += 1) await stage.clock.advance(1_000);
  return outcome;
}

/** The committed states that the action passes through, and how many points it has. */
async function clean(action: Action) {
  const stage = await arranged(action);
  const states = [stage.dump()];
  const run = stage.database.run.bind(stage.database);
  stage.database.run = (...call) => {
    const changes = run(...call);
    const state = call[0] === 'COMMIT' ? stage.dump() : states.at(-1);
    if (state !== states.at(-1)) states.push(state as string);
    return changes;
  };
  const outcome = await perform(action, stage);
  if (outcome instanceof Error || isRefusal(outcome)) throw new Error(`${action.name} does not succeed`);
  return { states, statements: stage.database.statements, writePoints: stage.database.writePoints };
}

/** How many rows each table has, whatever their ids. */
const shape = (dump: string): string =>
  JSON.stringify((JSON.parse(dump) as [string, unknown[]][]).map(([name, rows]) => [name, rows.length]));

/** After an attempt that failed or died, the same action once more comes to the same end, but for what only counts tries. */
async function carriesOn(action: Action, stage: Stage, end: string): Promise<void> {
  const outcome = await perform(action, stage);
  expect(outcome).not.toBeInstanceOf(Error);
  const without = (dump: string): string =>
    shape(
      JSON.stringify(
        (JSON.parse(dump) as [string, unknown[]][]).filter(
          ([name]) => !triesCount.has(name) && name !== action.leftToOthers,
        ),
      ),
    );
  expect(without(stage.dump())).toBe(without(end));
}

/** Tables in which another try leaves another row by design. */
const triesCount = new Set([
  'attempt',
  'presence',
  'connection',
  'reservation',
  'reservation_cover',
  'listener_row',
  'failed_delivery',
]);

describe.each(actions)('$name', (action) => {
  it('[MSG-005, MSG-087] leaves no partial row where any one of its statements fails', async () => {
    const { states, statements } = await clean(action);
    expect(statements).toBeGreaterThan(0);
    expect(states).toHaveLength(1 + (action.transactions ?? 1));
    for (let nth = 1; nth <= statements; nth += 1) {
      tested.statements.points += 1;
      const stage = await arranged(action);
      stage.database.failAt = nth;
      const outcome = await perform(action, stage);
      const at = `statement ${nth} of ${statements}`;
      expect(stage.database.committedAfterFailure, at).toBe(false);
      if (outcome instanceof Error) {
        expect(outcome, at).toBeInstanceOf(Fault);
        expect((outcome as Fault).code, at).toMatch(/^store_/);
        expect(states, at).toContain(stage.dump());
      } else if (!isRefusal(outcome)) await answerHolds(outcome, stage, at);
      await carriesOn(action, stage, states.at(-1) as string);
      tested.statements.held += 1;
    }
  });

  it('is whole or not at all where the process dies at a write, and is carried on by the next', async () => {
    const { states, writePoints } = await clean(action);
    expect(writePoints).toBeGreaterThan(0);
    for (let nth = 1; nth <= writePoints; nth += 1) {
      tested.crashes.points += 1;
      const stage = await arranged(action);
      const directory = temporaryDirectory();
      let copy = '';
      stage.database.crashAt = nth;
      stage.database.onCrash = () => {
        copy = copyStore(stage.file, directory);
      };
      const outcome = await perform(action, stage);
      const at = `write point ${nth} of ${writePoints}`;
      expect(copy, at).not.toBe('');
      if (!(outcome instanceof Crash) && !(outcome instanceof Error))
        await answerHolds(outcome, openStage(copy), at);
      expect(states, at).toContain(dumpOf(copy));
      const next = openStage(copy, 12);
      next.host = stage.host;
      await carriesOn(action, next, states.at(-1) as string);
      tested.crashes.held += 1;
    }
  });
});

/** What an answer names is in the store. */
async function answerHolds(outcome: unknown, stage: Stage, at: string): Promise<void> {
  if (typeof outcome !== 'object' || outcome === null) return;
  if ('message_id' in outcome)
    expect(
      stage.store.read((tx) => tx.messages.byId(String(outcome.message_id))),
      at,
    ).toBeDefined();
  if ('receipt_id' in outcome) expect(stage.dump(), at).toContain(String(outcome.receipt_id));
}
