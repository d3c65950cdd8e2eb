// What the tests of real hosts, and the tools beside them, never do to a host.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { root } from './process/postbell.ts';

const sources = ['test/hosts', 'tools', 'src'].flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs|cjs)$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name)),
);

/** Names under which vendors keep switches and accounts, and hosts their own stores and sockets. */
const forbidden: readonly [what: string, words: RegExp][] = [
  [
    'a vendor’s server-side switch',
    /statsig|growthbook|cached(?:Statsig|GrowthBook)|feature_?gates?\b|tengu_/i,
  ],
  ['an account’s state', /oauthAccount|\.credentials\.json|subscriptionType|chatgpt_account/i],
  ['a host’s own database', /(?:queue|state|logs|memories)_\d\.sqlite|thread-writer-locks/],
  ['a host’s private socket or token', /CLAUDE_CODE_MESSAGING_(?:SOCKET|TOKEN)/],
];
/** The one place that drops what a host would pass on; and where a login is looked for, and not made. */
const allowed: Readonly<Record<string, RegExp>> = {
  'src/platform/environment.ts': /CLAUDE_CODE_MESSAGING_/,
};

it('[HOST-234] they simulate, cache and forge nothing of a vendor or an account, and write to no private socket or database of a host', () => {
  const found = sources.flatMap((file) => {
    const name = path.relative(root, file);
    const text = readFileSync(file, 'utf8').replace(allowed[name] ?? /$^/, '');
    return forbidden.flatMap(([what, words]) => (words.test(text) ? [`${name}: ${what}`] : []));
  });
  expect(sources.length).toBeGreaterThan(250);
  expect(found).toEqual([]);
  // The scan would find it.
  expect(
    forbidden.map(([, words]) =>
      words.test('statsig oauthAccount queue_1.sqlite CLAUDE_CODE_MESSAGING_TOKEN'),
    ),
  ).toEqual(forbidden.map(() => true));
});
