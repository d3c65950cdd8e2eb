// Every code of the closed list: what raises it, and that each surface shows it in the one shape.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { describeError, type ErrorCode, errorCodes, Refusal } from '../../src/protocol/errors.ts';
import { whyNoDisk } from './fake-disk.ts';
import { type Home, makeHome } from './home.ts';
import { answer, postbell, root } from './postbell.ts';
import { type Asked, elsewhere, type Place, type Raised, raised } from './raised.ts';
import { liveCards, openOther, openSession } from './session.ts';

const rows = Object.entries(raised) as [ErrorCode, Raised][];
const noDisk = whyNoDisk();

const made: Home[] = [];
afterEach(async () => {
  for (const home of made.splice(0)) await home.end();
});

const projectIn = async (home: Home): Promise<string> =>
  (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;

const bob = { CLAUDE_CODE_SESSION_ID: 's1', POSTBELL_RECIPIENT: 'bob' };

/** The home of a row that makes its own: its server neither registers nor starts a router. */
async function ownPlace({ own, later, env = {}, roots, plain }: Raised): Promise<Place> {
  const home = makeHome();
  made.push(home);
  const data = home.env.POSTBELL_HOME as string;
  const project = await projectIn(home);
  await own?.(home, data);
  const other = { words: ['--no-register'], ...(roots && { roots }), ...(plain && { plain }) };
  const session = await openOther(home, { ...bob, ...env }, other);
  await later?.(home, data);
  return { home, data, project, session };
}

let shared: Place;
beforeAll(async () => {
  const home = makeHome();
  home.start(['router']);
  const project = await projectIn(home);
  const session = await openSession(home, bob);
  shared = { home, data: home.env.POSTBELL_HOME as string, project, session };
  await liveCards(home, project, 1);
});
afterAll(() => shared.home.end());

/** What every surface shows of a code, whatever its message says. */
function shapeOf(code: ErrorCode): object {
  const { fault, retryable, hint } = describeError(new Refusal(code, ''));
  return { code, fault, retryable, hint, message: expect.stringMatching(/^[^\n]+$/) };
}

const keys = ['code', 'details', 'fault', 'hint', 'message', 'retryable'];

function checkShape(code: ErrorCode, error: unknown): void {
  expect(error).toMatchObject(shapeOf(code));
  expect(keys).toEqual(expect.arrayContaining(Object.keys(error as object)));
  for (const value of Object.values((error as { details?: object }).details ?? {}))
    expect(['string', 'number', 'boolean']).toContain(typeof value);
}

/** A line for a person and the same as JSON; on stderr, and nothing on stdout. */
async function checkCommand(code: ErrorCode, row: Raised, { home }: Place, asked: Asked): Promise<void> {
  const run = (words: string[]) =>
    postbell({ ...home.env, ...row.env }, home.project, words, asked.input, row.plain);
  // One after the other: two that start a router would meet each other.
  const line = await run(asked.words);
  const json = await run([...asked.words, '--json']);
  expect([line, json]).toMatchObject(Array(2).fill({ code: 1, stdout: '' }));
  expect(line.stderr).toMatch(new RegExp(`^postbell: ${code}: [^\n]+ \\([^\n]+\\)\n$`));
  expect(json.stderr).toMatch(/^[^\n]+\n$/);
  checkShape(code, JSON.parse(json.stderr).error);
}

async function checkTool(code: ErrorCode, { session }: Place, asked: Asked): Promise<void> {
  const { isError, data } = await session.call(asked.tool as string, asked.arguments ?? {});
  expect(Object.keys(data)).toEqual(['error']);
  expect(isError).toBe(true);
  checkShape(code, data.error);
}

describe('every code', () => {
  it('is raised below or in the test that is named for it, and no other is', () => {
    const listed = [...Object.keys(raised), ...Object.keys(elsewhere)];
    expect(listed.toSorted()).toEqual([...errorCodes].toSorted());
    for (const [code, file] of Object.entries(elsewhere))
      expect(readFileSync(path.join(root, 'test', file), 'utf8')).toMatch(new RegExp(`\\b${code}\\b`));
  });

  it.for(rows)('looks the same on each surface: %s', async ([code, row], { skip }) => {
    if (row.disk && noDisk !== undefined) skip(noDisk);
    const place = row.own || row.env ? await ownPlace(row) : shared;
    const asked = await row.asked(place);
    await Promise.all([
      row.only !== 'mcp' && checkCommand(code, row, place, asked),
      row.only !== 'cli' && checkTool(code, place, asked),
    ]);
  });
});
