// What a person at a runner's terminal is asked, and which question a line answers.

import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Conversation, converse } from '../../src/surfaces/terminal/conversation.ts';

const stays = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));
let input: PassThrough;
let lines: string[];
let shown: () => string;
let talk: Conversation;
beforeEach(() => {
  input = new PassThrough();
  const output = new PassThrough().setEncoding('utf8');
  lines = [];
  shown = () => (output.read() as string | null) ?? '';
  talk = converse({ input, output, onLine: (line) => lines.push(line), onEnd: () => {} });
});
afterEach(() => talk.close());

it('[HOST-192, HOST-209] a line answers the one question that is shown: the next is asked when that is answered', async () => {
  const first = talk.ask('rm -rf ~', stays);
  const second = talk.ask('ls -l', stays);
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
});

it('[HOST-209] a question that is withdrawn takes no line: the next is put, or a line is a prompt again', async () => {
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
  const answers = [
    talk.ask('one', first.signal),
    talk.ask('two', second.signal),
    talk.ask('three', third.signal),
  ];
  expect(shown()).toContain('"one"');
  second.abort();
  expect([await answers[1], shown()]).toEqual([false, '']);
  first.abort();
  expect(await answers[0]).toBe(false);
  expect(shown()).toMatch(/^\nThat question needs no answer any more\.\n\n[^\n]*"three"[^\n]*\[y\/N\] $/);
  third.abort();
  expect(await answers[2]).toBe(false);
  expect(await talk.ask('four', third.signal)).toBe(false);
  shown();
  input.write('y\n');
  await settle();
  expect([shown(), lines]).toEqual(['', ['y']]);
});
