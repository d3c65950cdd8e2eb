// hosts/*.json: read whole by the host that needs it, and by hooks for one name alone.

import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/protocol/errors.ts';
import { configuredHosts, principalNamedIn, readHostConfig } from '../../src/protocol/host-config.ts';

const good = { version: 1, host: 'claude', principal_id: 'writer' };
const read = (value: unknown) =>
  readHostConfig('claude', typeof value === 'string' ? value : JSON.stringify(value));

describe('the config of a host', () => {
  it('is what was written, without what nobody knows', () => {
    const whole = {
      ...good,
      work_summary: 's',
      project: 'p',
      socket: '/s',
      server_name: 'n',
      session_id: 'i',
    };
    expect(read(whole)).toEqual(whole);
    expect(read({ ...good, auth_token: 'x', model: 'y' })).toEqual(good);
    expect(read({ ...good, principal_id: ' writer ' })).toEqual(good);
  });

  it.each([
    ['', '{', '[]', 'null', '7'],
    [{}, { ...good, version: 2 }, { ...good, host: 'codex' }, { ...good, principal_id: '/root' }],
    [
      { ...good, principal_id: 7 },
      { ...good, principal_id: '' },
      { ...good, work_summary: 'x'.repeat(201) },
    ],
    [
      { ...good, session_id: '../x\n' },
      { ...good, socket: 7 },
      { ...good, project: '' },
    ],
  ])('is refused where it is malformed (%#)', (...all) => {
    for (const one of all) expect([one, isRefusal(read(one))]).toEqual([one, true]);
  });

  it('has at most 65,536 bytes', () => {
    const of = (bytes: number): string => {
      const text = JSON.stringify({ ...good, project: '' });
      return text.replace('"project":""', `"project":"${'x'.repeat(bytes - text.length)}"`);
    };
    expect([of(65_536), of(65_537)].map((text) => [text.length, isRefusal(read(text))])).toEqual([
      [65_536, false],
      [65_537, true],
    ]);
    expect([principalNamedIn(of(65_536)), principalNamedIn(of(65_537))]).toEqual(['writer', undefined]);
  });

  it('names its principal to a hook whatever else is wrong with it', () => {
    expect(principalNamedIn(JSON.stringify({ principal_id: 'writer', version: 9, session_id: 7 }))).toBe(
      'writer',
    );
    for (const text of ['', '{', '{}', '{"principal_id":"/root"}', '{"principal_id":["writer"]}'])
      expect(principalNamedIn(text)).toBeUndefined();
  });
});

describe('[SES-128] the configs of all hosts', () => {
  const every = { work_summary: 's', project: 'p', socket: '/s', control_socket: '/c', server_name: 'n' };
  const command = ['agent', '--acp'];
  const whole = {
    claude: { ...every, session_id: 'i' },
    codex: { ...every, workspace: '/w' },
    'codex-session': { ...every, workspace: '/w' },
    gemini: { ...every, workspace: '/w', command, permission: 'reject', mode: 'plan' },
    acp: { ...every, workspace: '/w', command, permission: 'ask' },
  };

  it.each(configuredHosts)('%s: its fields and no token, at most 64 KiB', (host) => {
    const given = { version: 1, host, principal_id: 'writer', ...whole[host] };
    const of = (more: object) => readHostConfig(host, JSON.stringify({ ...given, ...more }));
    expect(of({})).toEqual(given);
    expect(of({ auth_token: 'x', token: 'y', model: 'z', lease_ms: 1 })).toEqual(given);
    expect(isRefusal(of({ more: 'x'.repeat(65_536) }))).toBe(true);
  });

  it.each(configuredHosts)('%s: poisoned, it is refused', (host) => {
    const given: Record<string, unknown> = { version: 1, host, principal_id: 'writer', ...whole[host] };
    const poison = [
      { version: '1' },
      { host: host === 'acp' ? 'gemini' : 'acp' },
      ...[7, '', ' ', '/root', ['writer'], 'x'.repeat(201)].map((principal_id) => ({ principal_id })),
      ...[...Object.keys(every), 'workspace', 'session_id', 'mode'].flatMap((name) => [
        { [name]: 7 },
        { [name]: '' },
        { [name]: ['/x'] },
      ]),
      { control_socket: 'relative' },
      { workspace: 'relative' },
      ...['agent', [], [''], ['agent', 7], ['a\0b'], {}].map((one) => ({ command: one })),
      { permission: 'allow' },
      { permission: 7 },
    ];
    for (const more of poison)
      expect([more, isRefusal(readHostConfig(host, JSON.stringify({ ...given, ...more })))]).toEqual([
        more,
        true,
      ]);
    const without = (name: string) =>
      isRefusal(readHostConfig(host, JSON.stringify({ ...given, [name]: undefined })));
    expect(without('workspace')).toBe(host !== 'claude');
    expect(without('command')).toBe(host === 'gemini' || host === 'acp');
  });
});
