// What is asked of a program line by line: whatever it says, there is an answer, and it has ended.

import { expect, it } from 'vitest';
import { converse } from '../../src/platform/dialogue.ts';
import { alive } from './postbell.ts';

it('a program that says what nobody can read is ended, and told of in words', async () => {
  let pid = 0;
  const script = `console.log(process.pid); console.log('null'); setInterval(() => {}, 1e6)`;
  const options = { env: process.env, cwd: '/', timeoutMs: 20_000, opening: '\n' };
  const asked = await converse(process.execPath, ['-e', script], options, (line) => {
    if (line === 'null') throw new TypeError('a secret');
    pid = Number(line);
    return {};
  });
  expect(asked).toEqual({ why: 'says what cannot be read' });
  expect(alive(pid)).toBe(false);
});
