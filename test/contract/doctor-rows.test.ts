// What doctor's rows decide from what was gathered, where a real installation would take a week or another machine.

import { describe, expect, it } from 'vitest';
import type { Integration, LiveSession } from '../../src/ports/inspection.ts';
import { type Finding, verdictOf, worst } from '../../src/protocol/doctor.ts';
import { readLenientJson } from '../../src/protocol/lenient-json.ts';
import { hookActivity } from '../../src/surfaces/doctor/activity.ts';
import type { DoctorFacts } from '../../src/surfaces/doctor/facts.ts';
import { node } from '../../src/surfaces/doctor/installed.ts';
import { listener } from '../../src/surfaces/doctor/reached.ts';
import { routerVersion } from '../../src/surfaces/doctor/routing.ts';
import { messageStorage } from '../../src/surfaces/doctor/stored.ts';
import { hooks } from '../../src/surfaces/doctor/wired.ts';

const nowMs = Date.parse('2030-01-08T00:00:00.000Z');
const facts = (some: object): DoctorFacts => ({ nowMs, version: '1.2.0', ...some }) as DoctorFacts;

describe('the verdict', () => {
  const of = (...given: Finding['level'][]) => verdictOf(given.map((level) => ({ level, text: '' })));

  it('is the worst row; information never counts', () => {
    expect([of(), of('pass', 'info'), of('info', 'warn', 'pass'), of('warn', 'fail', 'warn')]).toEqual([
      'PASS',
      'PASS',
      'PASS_WITH_CONCERNS',
      'FAIL',
    ]);
  });

  it('a row says all findings of its worst level, and each remedy once', () => {
    const sound: Finding = { level: 'pass', text: 'sound' };
    expect(worst([], sound)).toBe(sound);
    const warn = (text: string, hint: string): Finding => ({ level: 'warn', text, hint });
    const found = [{ level: 'info', text: 'x' } as const, warn('a', '1'), warn('b', '1'), warn('c', '2')];
    expect(worst(found, sound)).toEqual({ level: 'warn', text: 'a; b; c', hint: '1; then 2' });
  });
});

describe('JSON of other programs', () => {
  it.each([
    ['{"a":1}', { value: { a: 1 }, strict: true }],
    ['\uFEFF{"a":1}', { value: { a: 1 }, strict: true }],
    ['// x\n{"a": /* , */ [1, 2,], }', { value: { a: [1, 2] }, strict: false }],
    ['{"a": "// no \\" comment, }",}', { value: { a: '// no " comment, }' }, strict: false }],
    ['{"a": 1, // x\n}', { value: { a: 1 }, strict: false }],
    ['{"a": ', undefined],
    ['', undefined],
  ])('%j', (text, read) => {
    expect(readLenientJson(text)).toEqual(read);
  });
});

describe('node', () => {
  const sqlite = { state: 'found', value: { version: '3.51.3', fit: true, fts5: true } };
  const of = (running: string, value: object = {}) =>
    node(
      facts({
        packageDirectory: '/p',
        node: running,
        sqlite: { ...sqlite, value: { ...sqlite.value, ...value } },
      }),
    );

  it('fails below Node 20, SQLite 3.51.3, and without full-text search', () => {
    expect(of('20.0.0')).toMatchObject({ level: 'pass' });
    expect(of('18.20.1')).toMatchObject({ level: 'fail', text: 'Node 18.20.1 is too old' });
    expect(of('22.1.0', { fit: false, version: '3.51.2' })).toMatchObject({ level: 'fail' });
    expect(of('22.1.0', { fts5: false })).toMatchObject({
      level: 'fail',
      text: expect.stringContaining('FTS5'),
    });
  });
});

describe('hook-activity', () => {
  const line = (time: string, more: object = {}) =>
    JSON.stringify({
      hook: 'prompt',
      time,
      host: 'claude',
      outcome: 'error',
      reason: 'inbox: uncaught store_busy',
      ...more,
    });
  const of = (...lines: string[]) =>
    hookActivity(
      facts({ outcomes: [{ state: 'missing' }, { state: 'found', value: `${lines.join('\n')}\n` }] }),
    );

  it('[HOST-227] says where a recipient was refused', () => {
    const refused = { hook: 'prompt', outcome: 'notified', reason: 'recipient refused' };
    expect(of(line('2030-01-01T00:00:00.001Z', refused))).toMatchObject({
      level: 'warn',
      text: 'POSTBELL_RECIPIENT was refused and ignored in 7 days, times: 1',
      hint: expect.stringContaining('POSTBELL_RECIPIENT=reviewer'),
    });
    expect(of(line('2029-12-01T00:00:00.000Z', refused))).toMatchObject({ level: 'pass' });
  });

  it('counts errors of seven days by hook and reason', () => {
    expect(of(line('2030-01-01T00:00:00.001Z'), line('2029-12-31T23:59:59.999Z')).text).toBe(
      'hooks ended with errors in 7 days: prompt inbox: uncaught store_busy (1)',
    );
    const many = [
      line('2030-01-07T00:00:00.000Z', { hook: 'stop-gate' }),
      ...Array(2).fill(line('2030-01-06T00:00:00.000Z')),
    ];
    expect(of(...many).text).toBe(
      'hooks ended with errors in 7 days: prompt inbox: uncaught store_busy (2), stop-gate inbox: uncaught store_busy (1)',
    );
    expect(of(line('2029-12-01T00:00:00.000Z'))).toMatchObject({ level: 'pass' });
    for (const torn of ['null', '{"hook":"pro', line('no time')])
      expect(of(torn)).toMatchObject({
        level: 'warn',
        text: '1 of 1 lines of hook-outcomes.jsonl are unreadable',
      });
    expect(
      of(line('2030-01-02T00:00:00.000Z', { reason: 'inbox: uncaught store_unreadable' })).text,
    ).toContain('prompt inbox: uncaught store_unreadable (1)');
    expect(of(line('2030-01-07T00:00:00.000Z', { outcome: 'skipped' }))).toMatchObject({ level: 'pass' });
  });

  it('shows codes alone, and says how many lines are none', () => {
    const odd = of(line('2030-01-07T00:00:00.000Z', { reason: 'SELECT "secret"' }), 'torn', '{"hook":1}');
    expect(odd.level).toBe('warn');
    expect(odd.text).not.toContain('secret');
    expect(odd.text).toContain('2 of 3 lines');
  });
});

describe('router-version', () => {
  const of = (running: object) =>
    routerVersion(facts({ router: { path: '/s', bytes: 2, socket: 'private', running } }));

  it('an older one, a newer one and one that says none are warnings', () => {
    expect(of({ version: '1.2.0' }).level).toBe('pass');
    expect(of({ version: '1.2.0-rc.1' })).toMatchObject({
      level: 'warn',
      text: expect.stringContaining('older than'),
    });
    expect(of({ version: '1.3.0' })).toMatchObject({
      level: 'warn',
      text: expect.stringContaining('newer than'),
    });
    expect(of({}).level).toBe('warn');
    expect(of({ failed: 'router_timeout: no answer' }).text).toMatch(/^could not look: router_timeout/);
  });
});

describe('message-storage', () => {
  const of = (payloadBytes: number) =>
    messageStorage(
      facts({ quota: 1_000, walBytes: 0, store: { state: 'found', value: { mail: { payloadBytes } } } }),
    );

  it('warns beyond 80 percent of the quota', () => {
    expect([of(800).level, of(801).level]).toEqual(['pass', 'warn']);
  });
});

describe('listener', () => {
  const session: LiveSession = {
    project: 'p',
    session_id: 's1',
    host_kind: 'claude',
    bell: 'listener',
    connected_at: '2030-01-07T23:00:00.000Z',
    hookSeen: true,
    unanswered: false,
  };
  const of = (...given: Partial<LiveSession>[]) =>
    listener(
      facts({
        storePath: '/data/postbell.db',
        store: { state: 'found', value: { mail: { live: given.map((one) => ({ ...session, ...one })) } } },
        integrations: { state: 'missing' },
      }),
    );

  const server: Integration = {
    role: 'server',
    hostPid: 7,
    database: '/data/postbell.db',
    session: 's1',
    pinned: false,
    looked: true,
    ours: true,
  };
  const heard: Integration = { ...server, role: 'listener' };
  const running = (
    given: readonly (Integration | string)[],
    mail: object | undefined = { live: [], roots: {} },
  ) =>
    listener(
      facts({
        storePath: '/data/postbell.db',
        store: mail === undefined ? { state: 'missing' } : { state: 'found', value: { mail } },
        integrations: {
          state: 'found',
          value: given.map((one) =>
            typeof one === 'string' ? { state: 'closed', why: one } : { state: 'found', value: one },
          ),
        },
      }),
    );

  it('names both stores of a session whose server and listener have different ones', () => {
    expect(running([server, heard]).level).toBe('pass');
    const other = { ...heard, database: '/other/postbell.db', looked: false };
    const said = /different stores, .*: \/data\/postbell\.db \(server\), \/other\/postbell\.db \(listener\)/;
    expect(running([server, other])).toMatchObject({ level: 'warn', text: expect.stringMatching(said) });
    expect(running([server, other], undefined).text).toMatch(said);
    // Of another host, of another home, beside one that fits.
    expect(running([server, { ...other, hostPid: 8 }]).level).toBe('pass');
    const far = { looked: false, ours: false };
    expect(
      running([
        { ...server, ...far },
        { ...other, ...far },
      ]).level,
    ).toBe('pass');
    expect(running([server, other, { ...server, database: other.database, looked: false }]).level).toBe(
      'pass',
    );
  });

  it('names both ids where one is pinned and the store links them by nothing', () => {
    const pinned = { ...heard, session: 's2', pinned: true };
    expect(running([server, pinned]).text).toMatch(/different ids .*: "s1" \(server\), "s2" \(listener\)$/);
    expect(running([server, pinned], { live: [], roots: { s1: 's0', s2: 's0' } }).level).toBe('pass');
    expect(running([server, { ...pinned, pinned: false }]).level).toBe('pass');
    const unknown: Partial<Integration> = { ...server };
    delete unknown.session;
    expect(running([unknown as Integration, pinned]).level).toBe('pass');
  });

  it('says which process it could not look at', () => {
    expect(running([server, heard, 'process 9 cannot be read (EACCES)'])).toMatchObject({
      level: 'warn',
      text: 'could not look: process 9 cannot be read (EACCES)',
    });
  });

  it('is sound where each session can be rung and answers', () => {
    expect(of({}, { session_id: 's2' }).level).toBe('pass');
  });

  it('names a session whose hooks never came to this store, once they have had a minute', () => {
    expect(of({ hookSeen: false, connected_at: '2030-01-07T23:59:00.000Z' }).level).toBe('pass');
    const found = of({ hookSeen: false, connected_at: '2030-01-07T23:58:59.999Z' });
    expect(found.text).toBe(
      'no hook has ever come to /data/postbell.db for this session, whose hooks have another data directory, another id, or do not run: "s1"',
    );
  });

  it('names one whose last three rings brought no intake, one without a bell, one with a made-up id', () => {
    expect(of({ unanswered: true }).text).toBe('the last three rings brought no intake: "s1"');
    expect(of({ bell: 'none' }).text).toMatch(/^no bell, .*: "s1"$/);
    expect(of({ bell: 'none', host_kind: 'other', session_id: '0123456789abcdef' }).text).toMatch(
      /^an id that no hook/,
    );
  });

  it('names a few, and how many more', () => {
    const many = Array.from({ length: 5 }, (_, nth) => ({ session_id: `s${nth}`, unanswered: true }));
    expect(of(...many).text).toMatch(/"s0", "s1", "s2" and 2 more$/);
  });
});

describe('hooks', () => {
  const manifest = (timeout: number | undefined, args: string[] = []) =>
    JSON.stringify({
      hooks: { Stop: [{ hooks: [{ asyncRewake: true, timeout, args: ['launch.cjs', 'wait', ...args] }] }] },
    });
  const of = (text: string) => {
    const texts = { 'hooks/hooks.json': { state: 'found', value: text } };
    const claude = {
      present: true,
      unread: [],
      unstrict: [],
      servers: [],
      hooksOffIn: [],
      environment: {},
      plugin: { id: 'postbell@postbell', enabled: true, version: '1', root: '/r', texts },
    };
    return hooks(
      facts({
        claude,
        codex: { present: false },
        shipped: texts,
        switches: {},
        nodeOnPath: true,
        packageDirectory: '/p',
      }),
    );
  };

  it('a manifest timeout that a renewal does not fit in is named, with one that does', () => {
    expect(of(manifest(3_600)).level).toBe('pass');
    expect(of(manifest(30, ['--renew-after-secs', '3'])).level).toBe('pass');
    expect(of(manifest(3_000))).toMatchObject({
      level: 'warn',
      text: expect.stringContaining('after 3000 s'),
    });
    expect(of(manifest(30, ['--renew-after-secs', '30'])).hint).toMatch(/--renew-after-secs 25 or less$/);
    // Without one, the host ends it after 600 s.
    expect(of(manifest(undefined)).text).toContain('after 600 s');
  });
});
