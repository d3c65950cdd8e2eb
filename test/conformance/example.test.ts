// The bell of docs/adding-a-host.md, held to the suite; the page shows this very code.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../process/postbell.ts';
import type { MakeAdapter } from './adapters.ts';
import { type TowerAnswer, towerBell } from './example-bell.ts';
import { FixtureHost, type Said } from './fixture-host.ts';
import { suite } from './suite.case.ts';

/* page: adapter */
const answers: Record<Exclude<Said, { ok: true }>['code'], TowerAnswer> = {
  busy: { error: 'full' },
  unknown_method: { error: 'no such command' },
  invalid: { error: 'bad text' },
  closed: 'lost',
};

const tower: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  const tell = async (text: string): Promise<TowerAnswer> => {
    const said = await host.call(text);
    return said.ok ? { ticket: `ticket-${host.given.length}` } : answers[said.code];
  };
  return {
    bell: towerBell({ tell, isGone: () => host.script === 'dead', disconnect: () => {} }),
    host,
    evidence: 'answer',
    acceptedState: 'host_queued',
    rings: () => host.given,
    refuse: () => {
      host.script = 'refuse for good';
    },
    fallSilent: () => {
      host.script = 'silent';
      return { answer: () => host.answerLate() };
    },
    mend: () => {
      host.script = 'accept';
    },
  };
};

suite('the example', tower);
/* end */

it('the page shows this code, and no other', () => {
  const page = readFileSync(path.join(root, 'docs', 'adding-a-host.md'), 'utf8');
  const shown = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code);
  const here = path.join(root, 'test', 'conformance');
  const test = readFileSync(path.join(here, 'example.test.ts'), 'utf8');
  const adapter = /\/\* page: adapter \*\/\n([\s\S]*?)\/\* end \*\//.exec(test)?.[1];
  expect(shown).toEqual([readFileSync(path.join(here, 'example-bell.ts'), 'utf8'), adapter]);
});

it('a host that lacks the command is refused until it has it', async () => {
  let answer: TowerAnswer = { error: 'no such command' };
  const bell = towerBell({ tell: async () => answer, isGone: () => false, disconnect: () => {} });
  const item = {
    content: 'notice',
    notification_id: 'ab12',
    text: 'x',
    covered: [],
    session_id: 's1',
  } as const;
  const ring = () => bell.ring(item, new AbortController().signal);
  expect(await ring()).toMatchObject({ outcome: 'rejected', permanent: true });
  expect(bell.state()).toEqual({ state: 'refused', reason: 'no_such_command' });
  answer = { ticket: '1' };
  expect(await ring()).toMatchObject({ outcome: 'accepted', receipt: { ticket: '1' } });
  expect(bell.state()).toEqual({ state: 'ready' });
  answer = 'lost';
  expect(await ring()).toEqual({ outcome: 'unknown', code: 'adapter_disconnected' });
});
