// Codex's settings as text, what its server answers of trust, and which releases are known.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codexFacts } from '../../src/hosts/codex/installation.ts';
import { readToml } from '../../src/hosts/codex/toml.ts';
import { listenForTrust, openingOf } from '../../src/hosts/codex/trust.ts';
import type { Looked } from '../../src/ports/inspection.ts';
import { codexVersions, standingOf } from '../../src/protocol/host-versions.ts';

describe('TOML', () => {
  it.each([
    ['', {}],
    ['\ufeff# nothing\r\n\r\n', {}],
    ['a = "b" # c', { a: 'b' }],
    ['a.b."c.d" = true\n[x]\ny = false', { a: { b: { 'c.d': true } }, x: { y: false } }],
    [
      '[plugins."postbell@postbell"]\nenabled = true',
      { plugins: { 'postbell@postbell': { enabled: true } } },
    ],
    [
      "[ a . 'b' ]\nc=1_000\nd = -1.5e3\ne = 2026-01-01 10:00:00Z",
      {
        a: { b: { c: '1_000', d: '-1.5e3', e: '2026-01-01 10:00:00Z' } },
      },
    ],
    ['a = [ "x", # y\n  [true], { b = "c" }, ]', { a: ['x', [true], { b: 'c' }] }],
    ['a = { b = 1, "c d" = "e", f.g = true }', { a: { b: '1', 'c d': 'e', f: { g: true } } }],
    [
      '[[h.Stop]]\nmatcher = "a"\n[[h.Stop.hooks]]\ntype = "command"\n[[h.Stop]]\nmatcher = "b"',
      {
        h: { Stop: [{ matcher: 'a', hooks: [{ type: 'command' }] }, { matcher: 'b' }] },
      },
    ],
    ['a = "\\t\\"\\u00e9\\U0001F600\\\\"', { a: '\t"\u00e9\u{1f600}\\' }],
    ["a = 'C:\\x'\nb = ''\nc = \"\"", { a: 'C:\\x', b: '', c: '' }],
    [
      'a = """\n[plugins."x@y"]\nenabled = true\\\n   still "" here\\""""""\nb = "after"',
      {
        a: '[plugins."x@y"]\nenabled = truestill "" here"""',
        b: 'after',
      },
    ],
    // A backslash that is escaped is the last letter of its line; a third one goes on with the next.
    ['a = """x\\\\\ny"""\nb = "after"', { a: 'x\\\ny', b: 'after' }],
    ['a = """x\\\\\\ \t\r\n \r\n\t y"""', { a: 'x\\y' }],
    ['a = """x\\\n"""', { a: 'x' }],
    ['a = """x\\\n\u00a0y"""', { a: 'x\u00a0y' }],
    ["a = '''\n[x]\n\\n''''\n[b]\nc = true", { a: "[x]\n\\n'", b: { c: true } }],
    ['[__proto__]\nx = true', { ['__proto__']: { x: true } }],
  ] as const)('%j', (text, read) => {
    expect(JSON.parse(JSON.stringify(readToml(text)))).toEqual(read);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it.each([
    'a',
    'a =',
    'a = "b',
    'a = "b\nc"',
    'a = "\\q"',
    'a = "\\UFFFFFFFF"',
    'a = """b\\ c"""',
    'a = [1 2]',
    'a = { b = 1 c = 2 }',
    'a = 1 b = 2',
    '[a',
    '[a]]',
    'a = 1\n[a.b]',
    `a = ${'['.repeat(100)}${']'.repeat(100)}`,
    '= 1',
    '{"json": 1}',
  ])('%j is none', (text) => {
    expect(readToml(text)).toBeUndefined();
  });

  it('ends with an answer for whatever a file holds', () => {
    const letter = fc.constantFrom(...'ab="\'[]{}.,#\\\n\r\t -1'.split(''));
    fc.assert(
      fc.property(fc.string({ unit: letter, maxLength: 40 }), (text) => {
        const read = readToml(text);
        expect(read === undefined || typeof read === 'object').toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('what Codex knows of Postbell', () => {
  const missing: Looked<never> = { state: 'missing' };
  const of = (config: string, copies: string[] = ['0.1.0']) =>
    codexFacts({
      directory: '/h/.codex',
      program: undefined,
      read: (file) => (file === '/h/.codex/config.toml' ? { state: 'found', value: config } : missing),
      namesIn: (directory) =>
        directory === '/h/.codex/plugins/cache/market/postbell' ? { state: 'found', value: copies } : missing,
      isThere: (file) => file === '/h/.codex' || file === '/p',
      launches: () => '/p/dist/postbell.cjs',
    });

  it('is read from its settings, in whatever form they have', () => {
    const plugin = {
      id: 'postbell@market',
      enabled: true,
      copies: '/h/.codex/plugins/cache/market/postbell',
    };
    for (const text of [
      '[plugins."postbell@market"]\nenabled = true\n[mcp_servers.m]\ncommand = "x"\nargs = ["y"]',
      'plugins."postbell@market".enabled = true\nmcp_servers = { m = { command = "x", args = ["y"] } }',
      'plugins = { "postbell@market" = {} }\n[mcp_servers]\nm.command = "x"\nm.args = ["y"]',
    ])
      expect(of(text)).toMatchObject({
        present: true,
        unread: [],
        plugin: { ...plugin, copy: { version: '0.1.0', root: `${plugin.copies}/0.1.0` } },
        servers: [{ name: 'm', command: 'x', args: ['y'] }],
        hooksOff: false,
      });
    expect(of('[plugins."other@market"]\nenabled = true').plugin).toBeUndefined();
    expect(of('[features]\nhooks = false').hooksOff).toBe(true);
    expect(of('plugins = 7\nmarketplaces = "x"\nmcp_servers = []')).toMatchObject({
      unread: [],
      servers: [],
    });
  });

  it('of several copies the last is the one that runs, and a plugin that is on goes before one that is off', () => {
    expect(of('[plugins."postbell@market"]', ['0.1.0', '0.2.0']).plugin?.copy?.version).toBe('0.2.0');
    expect(of('[plugins."postbell@market"]', []).plugin?.copy).toBeUndefined();
    const both = '[plugins."postbell@a"]\nenabled = false\n[plugins."postbell@market"]\nenabled = true';
    expect(of(both).plugin?.id).toBe('postbell@market');
  });

  it('a marketplace of this machine is looked for; of another nothing is said', () => {
    const market = (source: string, type: string) =>
      of(`[marketplaces.postbell]\nsource_type = "${type}"\nsource = "${source}"`).marketplace;
    expect(market('/p', 'local')).toEqual({ path: '/p', missing: false });
    expect(market('/gone', 'local')).toEqual({ path: '/gone', missing: true });
    expect(market('https://example.org/x', 'git')).toEqual({ missing: false });
    expect(of('').marketplace).toBeUndefined();
  });
});

describe('what Codex says of trust', () => {
  const hook = (more: object) => ({ pluginId: 'p@m', eventName: 'stop', trustStatus: 'trusted', ...more });
  const greeting = JSON.stringify({ id: 1, result: { userAgent: 'postbell-doctor/0.171.0 (Debian)' } });

  it('is asked after the greeting, and its other lines are passed over', () => {
    const hear = listenForTrust('p@m', '/cwd');
    expect(JSON.parse(openingOf('1'))).toMatchObject({ id: 1, method: 'initialize' });
    expect(hear('no frame')).toEqual({});
    expect(hear('{"method":"configWarning","params":{}}')).toEqual({});
    const said = hear(greeting)
      .say?.trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(said).toEqual([
      { method: 'initialized' },
      { id: 2, method: 'hooks/list', params: { cwds: ['/cwd'] } },
    ]);
    const hooks = [
      hook({}),
      hook({ trustStatus: 'modified', enabled: false }),
      hook({ pluginId: 'other@m' }),
    ];
    const errors = [{ path: '/x', message: 'broken\nsk-secret' }];
    expect(hear(JSON.stringify({ id: 2, result: { data: [{ hooks, errors }] } })).end).toEqual({
      version: '0.171.0',
      hooks: [
        { event: 'stop', trust: 'trusted', enabled: true },
        { event: 'stop', trust: 'modified', enabled: false },
      ],
      errors: 1,
    });
  });

  it('is nothing where Codex refuses, or answers in another form', () => {
    const refused = { error: { code: -32600, message: 'Invalid request: unknown variant `hooks/list`' } };
    for (const [answer, why] of [
      [refused, 'it knows no such question'],
      [{ error: { code: -32600, message: 'key = "sk-secret"' } }, 'error -32600'],
      [{ error: { code: 'sk-secret', message: ['sk-secret'] } }, 'an answer of another form'],
      [{ result: {} }, 'an answer of another form'],
      [{ result: { data: 7 } }, 'an answer of another form'],
    ] as const) {
      const hear = listenForTrust('p@m', '/');
      hear(greeting);
      const { end } = hear(JSON.stringify({ id: 2, ...answer }));
      expect([end?.hooks, end?.refused]).toEqual([undefined, why]);
    }
    const end = listenForTrust('p@m', '/')('{"id":1,"error":{"code":7,"message":"sk-secret"}}').end;
    expect(end?.refused).toBe('error 7');
  });

  it('is read without a fault, whatever a line holds', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    for (const line of ['', 'null', '7', '"x"', '[]', '{', '{"id":null}', deep, `{"id":3,"result":${deep}}`])
      expect(listenForTrust('p@m', '/')(line)).toEqual({});
    const opened = listenForTrust('p@m', '/');
    expect(opened(`{"id":1,"result":{"userAgent":${deep}}}`).say).toContain('hooks/list');
    const odd = `{"pluginId":"p@m","eventName":${deep},"trustStatus":"${'x'.repeat(1_000_000)}"}`;
    const { end } = opened(
      `{"id":2,"result":{"data":[null,7,{"hooks":7},{"hooks":[null,7,${odd}],"errors":{}}]}}`,
    );
    const word = 'of another form';
    expect(end).toEqual({ errors: 0, hooks: [{ event: word, trust: word, enabled: true }] });
  });
});

describe('a release of Codex', () => {
  it.each([
    ['0.171.0', 'tested'],
    ['0.159.0', 'limited'],
    ['0.170.9', 'limited'],
    ['0.158.9', 'refused'],
    ['0.159.0-alpha.1', 'refused'],
    ['0.171.1', 'newer'],
    ['1.0.0', 'newer'],
    ['latest', 'unknown'],
  ])('%s is %s', (version, standing) => {
    expect(standingOf(version, codexVersions)).toBe(standing);
  });
});
