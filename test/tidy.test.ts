// The conventions that tools/tidy.ts enforces hold in this repository, and each rule catches its canary.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { report, tidy } from '../tools/tidy.ts';
import { refusalOfSibling } from '../tools/tidy-imports.ts';
import { bundles } from '../tools/tidy-table.ts';
import { checkBundles } from '../tools/tidy-texts.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const trees: string[] = [];

afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true, force: true });
});

/** Writes a small tree and returns its root. */
function plant(files: Record<string, string>): string {
  const tree = mkdtempSync(path.join(tmpdir(), 'tidy-'));
  trees.push(tree);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(tree, name)), { recursive: true });
    writeFileSync(path.join(tree, name), text);
  }
  return tree;
}

/** The reported offences of a small tree. */
function offences(files: Record<string, string>): string[] {
  return report(tidy(plant(files)).offences);
}

/** The reported offences of one source. */
function offencesOf(name: string, ...lines: string[]): string[] {
  return offences({ [name]: `${lines.join('\n')}\n` });
}

describe('this repository', () => {
  it('keeps the conventions', () => {
    const { offences: found, notes } = tidy(root);
    for (const note of report(notes)) process.stderr.write(`note: ${note}\n`);
    expect(report(found)).toEqual([]);
  });

  it('[MSG-195] takes time from the one clock that is passed in, in sources and in SQL', () => {
    const banned = report(tidy(root).offences).filter((line) => /clock|time/.test(line));
    expect(banned).toEqual([]);
    const other = [
      'export const a = Date.now();',
      'export const b = new Date();',
      'export const c = performance.now();',
      'setTimeout(() => {}, 1);',
      'setInterval(() => {}, 1);',
      `export const sql = "SELECT datetime('now')";`,
      `export const sql = "SELECT strftime('%s', 'now')";`,
      'export const sql = "SELECT unixepoch()";',
      'export const sql = "INSERT INTO t VALUES (CURRENT_TIMESTAMP)";',
    ];
    for (const line of other)
      for (const folder of ['mailbox', 'sessions', 'router', 'store', 'protocol'])
        expect(offencesOf(`src/${folder}/x.ts`, line).length).toBeGreaterThan(0);
  });

  it('bundles nothing but what each entry may contain', () => {
    expect(report(checkBundles(root))).toEqual([]);
  });
});

describe('layers', () => {
  it.each([
    ['src/protocol/scope.ts', '../ports/clock.ts', 'protocol may not import ports'],
    ['src/crypto/seal.ts', '../ports/random.ts', 'crypto may not import ports'],
    ['src/mailbox/send.ts', '../store/open.ts', 'mailbox may not import store'],
    ['src/store/open.ts', '../mailbox/send.ts', 'store may not import mailbox'],
    ['src/store/open.ts', '../platform/clock.ts', 'store may not import platform'],
    ['src/router/daemon.ts', '../platform/clock.ts', 'router may not import platform'],
    ['src/carriers/postbell/post.ts', '../loopback/post.ts', 'carriers/postbell may not import its sibling'],
    ['src/hosts/codex/bell.ts', '../claude-code/bell.ts', 'hosts/codex may not import its sibling'],
    ['src/surfaces/mcp/tools.ts', '../cli/send.ts', 'surfaces/mcp may not import its sibling'],
    ['src/surfaces/mcp/tools.ts', '../../store/open.ts', 'surfaces/mcp may not import store'],
    ['src/compose/cli.ts', './router.ts', 'compose/cli may not import its sibling compose/router'],
    ['src/protocol/limits.ts', '../../tools/tidy.ts', 'protocol leaves src/'],
  ])('%s does not import %s', (file, target, sentence) => {
    const lines = [`import { a } from '${target}';`, `export { b } from '${target}';`];
    const found = offencesOf(file, ...lines, `import type { C } from '${target}';`);
    expect(found).toEqual(
      [1, 2, 3].map((line) => expect.stringContaining(`${file}:${line} layers: ${sentence}`)),
    );
  });

  it.each([
    ['src/mailbox/send.ts', '../sessions/dispatch.ts'],
    ['src/surfaces/cli/send.ts', './print.ts'],
    ['src/hosts/codex/app-server/client.ts', '../bell.ts'],
    ['src/compose/cli.ts', '../platform/environment.ts'],
    ['src/relay/queue/sqlite.ts', '../../protocol/frames.ts'],
  ])('%s may import %s', (file, target) => {
    expect(offencesOf(file, `import { a } from '${target}';`)).toEqual([]);
  });

  it('ports take types of protocol and nothing else of it', () => {
    const found = offencesOf(
      'src/ports/store.ts',
      "import type { Scope } from '../protocol/scope.ts';",
      "import { type A, type B as C } from '../protocol/message.ts';",
      "import { type A, limits } from '../protocol/limits.ts';",
    );
    expect(found).toEqual([
      'src/ports/store.ts:3 layers: ports may import types only of protocol (`../protocol/limits.ts`)',
    ]);
  });

  it('main loads entries lazily', () => {
    const found = offencesOf(
      'src/main.ts',
      "import { exits } from './protocol/errors.ts';",
      "if (exits) await import('./compose/cli.ts');",
      "import { run } from './compose/cli.ts';",
      "await import('./store/open.ts');",
      "import { join } from 'node:path';",
    );
    expect(found).toEqual([
      expect.stringMatching(/^src\/main\.ts:3 layers: .*not import compose\/cli/),
      expect.stringMatching(/^src\/main\.ts:4 layers: .*not import store/),
      'src/main.ts:5 vendors: `node:path` is not allowed in main',
    ]);
  });

  it('siblings may import a file that the table calls shared', () => {
    const row = { imports: [], vendors: [], siblings: { shared: ['parts'] } };
    const cli = { layer: 'compose', sibling: 'cli' };
    expect(refusalOfSibling(row, cli, { layer: 'compose', sibling: 'parts' })).toBeUndefined();
    expect(refusalOfSibling(row, cli, { layer: 'compose', sibling: 'hook' })).toContain('sibling');
  });

  it('no folder stands outside the table, and no import computes its name', () => {
    expect(offencesOf('src/misc/a.ts', '')).toEqual([
      expect.stringContaining('src/misc/a.ts:1 layers: no row'),
    ]);
    expect(offencesOf('src/compose/cli.ts', `await import(\`../store/\${name}.ts\`);`)).toHaveLength(1);
  });
});

describe('vendors', () => {
  it.each([
    ['src/protocol/limits.ts', 'node:path'],
    ['src/crypto/seal.ts', 'node:fs'],
    ['src/ports/lock.ts', 'node:net'],
    ['src/mailbox/send.ts', 'node:crypto'],
    ['src/store/open.ts', 'zod'],
    ['src/store/open.ts', 'fs'],
    ['src/relay/server.ts', 'better-sqlite3'],
    ['src/hosts/codex/bell.ts', '@agentclientprotocol/sdk'],
    ['src/surfaces/cli/send.ts', '@modelcontextprotocol/server'],
    ['src/compose/mcp.ts', '@modelcontextprotocol/server'],
  ])('%s does not import %s', (file, specifier) => {
    expect(offencesOf(file, `import '${specifier}';`)).toEqual([
      expect.stringContaining(`${file}:1 vendors: \`${specifier}\` is not allowed in`),
    ]);
  });

  it.each([
    ['src/crypto/seal.ts', 'node:crypto'],
    ['src/store/open.ts', 'better-sqlite3'],
    ['src/relay/queue/jetstream.ts', '@nats-io/jetstream'],
    ['src/hosts/acp/bell.ts', '@agentclientprotocol/sdk'],
    ['src/surfaces/mcp/tools.ts', '@modelcontextprotocol/server/stdio'],
    ['src/surfaces/http/api.ts', '@hono/node-server'],
    ['src/platform/log.ts', 'pino'],
  ])('%s may import %s', (file, specifier) => {
    expect(offencesOf(file, `import { a } from '${specifier}';`)).toEqual([]);
  });
});

describe('banned calls', () => {
  it.each([
    'const a = Date.now();',
    'const a = globalThis.Date?.now();',
    "const a = Date['now']();",
    'const a = new Date();',
    'const a = new Date;',
    'const a = Math.random();',
    'const a = crypto.randomUUID();',
    'const a = crypto.randomBytes(8);',
    'const a = crypto.getRandomValues(bytes);',
    'const a = randomBytes(8);',
    'const a = generateKeyPairSync(kind);',
    'setTimeout(again, 5);',
    'globalThis.setInterval(again, 5);',
    'const a = { wait: setImmediate };',
    'const a = process.env.HOME;',
    "const a = process?.['env'];",
    'const { env } = process;',
    'const a = process.argv;',
    'process.exitCode = 1;',
    'console.log(1);',
    `const a = \`\${console.log(1)}\`;`,
    "import { b } from 'node:timers/promises';",
    "import { env } from 'node:process';",
  ])('%s', (line) => {
    expect(offencesOf('src/store/a.ts', '', line)).toEqual([
      expect.stringMatching(/^src\/store\/a\.ts:2 banned: /),
    ]);
  });

  it.each([
    "const a = db.exec(`\n  SELECT datetime('now')`);",
    'const a = "x\\\n CURRENT_TIMESTAMP";',
    `const a = \`SELECT \${b}\n strftime('%s', at)\`;`,
  ])('SQL time in %j', (line) => {
    expect(offencesOf('src/store/a.ts', line)).toEqual([
      expect.stringMatching(/^src\/store\/a\.ts:2 banned: .*in SQL/),
    ]);
  });

  it('SQL time in a migration, but not in its comments', () => {
    const found = offencesOf(
      'src/store/sql/001-first.sql',
      '-- not CURRENT_TIMESTAMP: the caller binds it',
      '/* nor',
      "   datetime('now') */",
      "CREATE TABLE a (at INTEGER DEFAULT (unixepoch('subsec')), b TEXT DEFAULT CURRENT_TIMESTAMP);",
      "INSERT INTO a VALUES (julianday('--'), '');",
    );
    expect(found.map((line) => line.replace(/:.*?(\d+) banned: `(.*?)`.*/, ' $1 $2'))).toEqual([
      'src/store/sql/001-first.sql 4 unixepoch(',
      'src/store/sql/001-first.sql 4 CURRENT_TIMESTAMP',
      'src/store/sql/001-first.sql 5 julianday(',
    ]);
  });

  it('compose and main read arguments and set the exit status, but no environment', () => {
    const lines = ['process.exitCode = Number(process.argv[2]);', 'export const { HOME } = process.env;'];
    for (const file of ['src/main.ts', 'src/compose/cli.ts']) {
      expect(offencesOf(file, ...lines)).toEqual([
        expect.stringContaining(`${file}:2 banned: \`process.env\``),
      ]);
    }
  });

  it('platform may, and a likeness is not the thing', () => {
    expect(offencesOf('src/platform/clock.ts', 'export const now = () => Date.now();')).toEqual([]);
    const likeness = [
      '// Date.now(), console.log()',
      '/* process.env */ const a = "Math.random() setTimeout()";',
      'const b = /console.log`/; socket.setTimeout(5); new Date(at); clock.now();',
      `const c = \`process.env \${a / b / c} new Date()\`;`,
    ];
    expect(offencesOf('src/store/a.ts', ...likeness)).toEqual([]);
  });
});

describe('shape', () => {
  it('folders name parts of the product', () => {
    for (const folder of ['core', 'common', 'utils', 'helpers', 'lib', 'shared']) {
      const file = `src/mailbox/${folder}/a.ts`;
      expect(offences({ [file]: '' })).toEqual([
        expect.stringContaining(`${file}:1 names: folder \`${folder}\``),
      ]);
    }
  });

  it('files are kebab-case', () => {
    for (const name of ['sendMail.ts', 'Send.ts', 'send_mail.ts', '001_first.sql']) {
      expect(offences({ [`src/store/${name}`]: '' })).toEqual([expect.stringContaining('is not kebab-case')]);
    }
    expect(offences({ 'src/store/send-mail.ts': '', 'test/send-mail.test.ts': '' })).toEqual([]);
  });

  it('exports by name', () => {
    const lines = ['export default 1;', "export * from './b.ts';", "export * as c from './c.ts';"];
    const found = offencesOf(
      'src/store/a.ts',
      ...lines,
      "export type * from './d.ts';",
      'export { e as default };',
    );
    expect(found).toEqual(
      [1, 2, 3, 4, 5].map((line) => expect.stringContaining(`src/store/a.ts:${line} exports: `)),
    );
    expect(offencesOf('test/some.config.ts', 'export default {};')).toEqual([]);
    expect(
      offencesOf('src/sql.d.ts', "declare module '*.sql' { const a: string; export default a; }"),
    ).toEqual([]);
  });

  it('a file has at most 600 lines, and is noted from 400', () => {
    const lines = (count: number) => 'a;\n'.repeat(count);
    expect(offences({ 'src/store/a.ts': lines(601) })).toEqual([expect.stringContaining('601 lines')]);
    expect(offences({ 'src/store/a.sql': lines(601), 'src/protocol/error-table.ts': lines(601) })).toEqual(
      [],
    );
    const { offences: found, notes } = tidy(
      plant({ 'src/store/a.ts': lines(600), 'src/store/b.ts': lines(400) }),
    );
    expect(found).toEqual([]);
    expect(report(notes)).toEqual(['src/store/a.ts:1 lines: 600 lines; at 400 ask why']);
  });

  it.each([
    ['export function f(a: A): Promise<{ b: C }> {', '}'],
    ['export const f = async (a: A): Promise<B> => {', '};'],
    ['class A<B> { private async *f(a = {}): AsyncGenerator<Map<B, { c: 1 }>, void> {', '} }'],
    ['export const f = { g() {', '} };'],
    ['export function f(): () => void {', '}'],
  ])('a function has at most 70 lines: %s', (opens, closes) => {
    const body = (count: number) => ['', opens, ...Array(count - 2).fill('  "{"; // }'), closes];
    expect(offencesOf('src/store/a.ts', ...body(70))).toEqual([]);
    expect(offencesOf('src/store/a.ts', ...body(71))).toEqual([
      'src/store/a.ts:2 lines: a function of 71 lines; one has at most 70',
    ]);
  });

  it('a long table, class or block is no long function', () => {
    const long = (opens: string, closes: string) => [opens, ...Array(80).fill(''), closes];
    const texts = [
      long('export const table = {', '};'),
      long('class A extends mixin(B) {', '}'),
      long('if (a(b)) {', '}'),
      long('for await (const a of b) {', '}'),
      long('export interface A { b(c: D): {', '} }'),
    ];
    for (const lines of texts) expect(offencesOf('src/store/a.ts', ...lines)).toEqual([]);
  });
});

describe('texts', () => {
  const page = '| id | rule | test |\n|---|---|---|\n| MSG-014 | Stored first. | Kill it. |\n';
  // Put together here, so that this file cites no row itself.
  const cite = (...ids: string[]) => `[${ids.join(', ')}]`;

  it('a citation names a row', () => {
    const found = offences({
      'docs/spec/messages.md': page,
      'test/a.test.ts': [
        `// ${cite('MSG-997')}`,
        `it('stores ${cite('MSG-014')}', () => {});`,
        `it.each([])(\`stores\n  \${a} ${cite('MSG-014', 'MSG-998')}\`, () => {});`,
      ].join('\n'),
      'test/cli/b.txt': `# sends ${cite('MSG-999')}\n`,
    });
    expect(found).toEqual([
      'test/a.test.ts:4 citations: MSG-998 is no row of docs/spec/',
      'test/cli/b.txt:1 citations: MSG-999 is no row of docs/spec/',
    ]);
  });

  it('no file holds a path of a developer machine', () => {
    const paths = ['work', 'farm'].map((name) => `/${name}/main`);
    const found = offences({
      'docs/a.md': `see\n${paths.join('\n')}\n.${'library'}/x\n`,
      'package-lock.json': paths[0]!,
    });
    expect(found).toEqual([2, 3, 4].map((line) => expect.stringContaining(`docs/a.md:${line} tree-text: `)));
  });
});

describe('bundles', () => {
  const entry = { inputs: { 'src/compose/x.ts': {} } };
  const outputs = Object.fromEntries(Object.keys(bundles).map((name) => [`dist/${name}`, entry]));
  const meta = (more: object) =>
    plant({ 'dist/meta.json': JSON.stringify({ outputs: { ...outputs, ...more } }) });

  it('hold no package that their row does not name', () => {
    const inputs = (...names: string[]) => ({
      inputs: Object.fromEntries(names.map((name) => [`../main/node_modules/${name}/index.js`, {}])),
    });
    const tree = meta({
      'dist/hook.cjs': inputs('zod'),
      'dist/mcp.cjs': inputs('zod', '@modelcontextprotocol/core', '@hono/node-server/node_modules/hono'),
    });
    expect(report(checkBundles(tree))).toEqual([
      'dist/meta.json:1 bundles: hook.cjs contains zod',
      'dist/meta.json:1 bundles: mcp.cjs contains hono',
    ]);
    expect(checkBundles(meta({}))).toEqual([]);
  });

  it('have to be there', () => {
    expect(report(checkBundles(plant({})))).toEqual([
      expect.stringContaining('is missing: run `npm run build`'),
    ]);
    expect(report(checkBundles(plant({ 'dist/meta.json': '{"outputs":{}}' })))).toHaveLength(
      Object.keys(bundles).length,
    );
  });
});
