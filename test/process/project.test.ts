// Two directories of one name are two projects.

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answer, postbell } from './postbell.ts';

let dir: string;
beforeEach(() => {
  dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'proj-')));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('the project of a directory', () => {
  it('[SES-013] keeps two unrelated directories of one name apart', async () => {
    const [one, two] = [path.join(dir, 'x', 'shared'), path.join(dir, 'y', 'shared')];
    for (const place of [one, two]) mkdirSync(place, { recursive: true });
    const env = { PATH: process.env.PATH as string, HOME: dir };
    await answer(env, one, ['send', 'alice', '--json'], 'for x');
    await answer(env, two, ['send', 'bob', '--json'], 'for y');
    expect(await answer(env, two, ['inbox', 'receive', '--recipient', 'alice'])).toMatchObject({
      messages: [],
    });
    expect((await answer(env, one, ['inbox', 'receive', '--recipient', 'alice'])).messages).toHaveLength(1);
    expect((await postbell(env, two, ['inbox', 'receive', '--recipient', 'alice'])).stdout).not.toContain(
      'for x',
    );
  });
});
