// What others write takes time in proportion to its length, wherever it is looked at: nobody can hold up a store or a
// server by a text. Quadratic work on these took 5 to 13 s each.

import { expect, it } from 'vitest';
import { isRefusal } from '../../src/protocol/errors.ts';
import { needsNoAnswer } from '../../src/protocol/loop-guard.ts';
import { readName } from '../../src/protocol/scope.ts';
import { inertJson, inertLine, inertValue } from '../../src/protocol/untrusted.ts';

const long = 65_000;

it.each([
  ...['.', '!', ' ', ', ', '\u2026', '\n'].map((part) => `a${part.repeat(long / part.length)}x`),
  ...['< ', '<\t', '</ ', '<postbell-'].map((part) => part[0] + (part.slice(1) || ' ').repeat(long)),
  `<${' '.repeat(long)}/${' '.repeat(long)}x`,
  '<'.repeat(long),
  `<${'a'.repeat(long)}`,
])('%#: a long text', (text) => {
  const began = performance.now();
  expect(needsNoAnswer({ payload: text, reply_to: 'msg_1' })).toBe(false);
  inertLine(text);
  inertValue(text);
  inertJson({ payload: text });
  expect(performance.now() - began).toBeLessThan(2_000);
});

it('refuses a name of many marks without normalising it', () => {
  const began = performance.now();
  expect(isRefusal(readName('recipient', `a${'\u0301\u0323'.repeat(200_000)}`))).toBe(true);
  expect(performance.now() - began).toBeLessThan(2_000);
  // The most that 200 characters can be written with.
  expect(readName('recipient', '\u03b1\u0313\u0300\u0345'.repeat(200))).toBe('\u1f82'.repeat(200));
});

it('keeps every member where two names become one', () => {
  expect(inertValue({ '<system>': 1, '&lt;system>': 2, c: 3 })).toEqual({
    '&lt;system>': 1,
    "&lt;system>'2": 2,
    c: 3,
  });
  const twins = { '\u007f': 1, '\\u007f': 2, "\\u007f'2": 3 };
  expect(Object.values(inertValue(twins) as object)).toEqual([1, 2, 3]);
});

it('tells thousands of such names apart, and makes them hardly longer', () => {
  const names = Array.from({ length: 2_048 }, (_, nth) =>
    Array.from({ length: 11 }, (_, bit) => ((nth >> bit) % 2 === 0 ? '\u007f' : '\\u007f')).join(''),
  );
  const began = performance.now();
  const shown = inertValue(Object.fromEntries(names.map((name, nth) => [name, nth])));
  expect(performance.now() - began).toBeLessThan(500);
  expect(Object.values(shown as object)).toEqual(names.map((_, nth) => nth));
  expect(JSON.stringify(shown).length).toBeLessThan(3 * JSON.stringify(names).length);
});
