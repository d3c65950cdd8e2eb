// What a person at a runner's terminal is asked, and which question a line answers.

import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { converse } from '../../src/surfaces/terminal/conversation.ts';

it('[HOST-192, HOST-209] a line answers the one question that is shown: the next is asked when that is answered', async () => {
  const input = new PassThrough();
  const output = new PassThrough().setEncoding('utf8');
  const lines: string[] = [];
  const talk = converse({ input, output, onLine: (line) => lines.push(line), onEnd: () => {} });
  const shown = (): string => (output.read() as string | null) ?? '';
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const first = talk.ask('rm -rf ~');
  const second = talk.ask('ls -l');
  expect(shown()).toMatch(/^\n[^\n]*"rm -rf ~"[^\n]*\[y\/N\] $/);
  input.write('n\n');
  expect(await first).toBe(false);
  await settle();
  expect(shown()).toMatch(/^\n[^\n]*"ls -l"[^\n]*\[y\/N\] $/);
  input.write('y\n');
  expect(await second).toBe(true);
  input.write('a prompt\n');
  await settle();
  expect([shown(), lines]).toEqual(['', ['a prompt']]);
  talk.close();
});
