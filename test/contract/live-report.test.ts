// What the owner-run live check says of what it saw.

import { describe, expect, it } from 'vitest';
import { asText, judge, namesHooks, namesServer, reportOf, unfit } from '../../tools/live-report.mjs';

const versions = { postbell: '1.2.3', node: '20.1.0', host: '9.9.9', platform: 'linux x64 6.1' };
const at = (second: number) => `2030-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const ms = (second: number) => Date.parse(at(second));

const accepted = (adapter_kind: string) => ({
  receipt_kind: 'host_accept',
  source: 'host_accept',
  value: 'notice',
  adapter_kind,
  recorded_at: at(2),
});
const intake = {
  receipt_kind: 'intake',
  source: 'receipt',
  value: 'ingested',
  actor: 'reader',
  caller_session: 's1',
  recorded_at: at(5),
};
const reply = {
  message_id: 'msg_b',
  reply_to: 'msg_a',
  payload: 'the code is CODE',
  provenance: { transport: 'mcp', session: 's1' },
};
const reminded = { hook: 'prompt', host: 'claude', outcome: 'notified', reason: 'lines: 1', time: at(4) };

const run = {
  channel: false,
  day: '2030-01-01',
  versions,
  sent: { message_id: 'msg_a', created_at: at(1) },
  code: 'CODE',
  session: { session_id: 's1', principal_id: 'reader' },
  receipts: [accepted('claude-listener'), intake],
  inbox: [reply],
  records: [] as object[],
  printsMs: [ms(3)],
  told: 0,
};
const overChannel = { ...run, channel: true, receipts: [accepted('claude-channel'), intake], printsMs: [] };

const resultOf = (of: object, id: string) => judge(of).rows.find((row) => row.id === id)?.result;

describe('a pass', () => {
  it('needs the session\u2019s own intake and its answer with the code', () => {
    expect(judge(run).result).toBe('passed');
    for (const others of [
      [accepted('claude-listener')],
      [{ ...intake, actor: 'somebody' }],
      [{ ...intake, caller_session: 's2' }],
      [{ ...intake, receipt_kind: 'ack' }],
    ])
      expect([
        judge({ ...run, receipts: others }).result,
        resultOf({ ...run, receipts: others }, 'intake'),
      ]).toEqual(['not passed', 'fail']);
    for (const other of [
      { ...reply, payload: 'done' },
      { ...reply, reply_to: 'msg_c' },
      { ...reply, provenance: { transport: 'cli', session: 's1' } },
      { ...reply, provenance: { transport: 'mcp', session: 's2' } },
      { ...reply, provenance: undefined },
    ])
      expect([
        judge({ ...run, inbox: [other] }).result,
        resultOf({ ...run, inbox: [other] }, 'read-back'),
      ]).toEqual(['not passed', 'fail']);
    expect(judge({ ...run, inbox: [{ ...reply, payload: { said: ['CODE'] } }] }).result).toBe('passed');
  });

  it('of the listener needs a notice that it printed, before any reminder and before the session looked', () => {
    const wake = (more: object) => resultOf({ ...run, ...more }, 'wake');
    expect(wake({ records: [reminded] })).toBe('pass');
    expect(
      wake({
        records: [
          { ...reminded, time: at(0) },
          { ...reminded, outcome: 'skipped', time: at(2) },
        ],
      }),
    ).toBe('pass');
    expect(wake({ printsMs: [ms(0)] })).toBe('fail');
    expect(wake({ printsMs: [] })).toBe('fail');
    expect(wake({ records: [{ ...reminded, time: at(2) }] })).toBe('fail');
    expect(wake({ printsMs: [ms(6)] })).toBe('fail');
  });
});

describe('[HOST-279] what is said of channels', () => {
  it('is said by the check of the channel alone, for that account, release and day', () => {
    const said = judge(overChannel).rows.find(({ id }) => id === 'channel');
    expect(said).toMatchObject({
      result: 'pass',
      text: expect.stringMatching(/^on this account, with Claude Code 9\.9\.9, on 2030-01-01: /),
    });
    const report = reportOf({ ...overChannel, ...judge(overChannel) });
    expect(report.limitations).toContainEqual(
      expect.stringMatching(
        /of channels holds for the account that was logged in, Claude Code 9\.9\.9, and 2030-01-01\.$/,
      ),
    );
    const other = reportOf({ ...run, ...judge(run) });
    expect(other.rows.map(({ id }) => id)).not.toContain('channel');
    expect(other.limitations).toContain('Nothing is said of channels.');
  });

  it.each([
    ['a reminder', { records: [reminded] }, /told by hooks \(1\)/],
    ['the gate', { records: [{ ...reminded, hook: 'stop-gate' }], told: 1 }, /Stop gate/],
    ['a listener', { printsMs: [ms(3)] }, /printed by a listener \(1\)/],
    ['a notice between two tools', { told: 2 }, /between two tools \(2\)/],
    ['nothing', { receipts: [intake] }, /nothing was written to the channel/],
    [
      'a look of its own',
      { receipts: [accepted('claude-channel'), { ...intake, recorded_at: at(1) }] },
      /before the channel/,
    ],
    ['no answer', { inbox: [] }, /nothing shows that the model saw it/],
    [
      'another bell',
      { receipts: [accepted('claude-listener'), intake] },
      /nothing was written to the channel/,
    ],
  ])('%s is no pass of the channel', (_what, more, text) => {
    const verdict = judge({ ...overChannel, ...more });
    expect(verdict.result).toBe('not passed');
    expect(verdict.rows.find(({ id }) => id === 'channel')).toMatchObject({
      result: 'fail',
      text: expect.stringMatching(text),
    });
  });
});

describe('every report', () => {
  const reports = [
    reportOf({ ...run, ...judge(run) }),
    reportOf({ ...overChannel, ...judge(overChannel) }),
    reportOf({ channel: false, day: '2030-01-01', versions, result: 'stopped', rows: [] }),
  ];

  it('[SES-157] has limitations, and names the versions of Postbell, Node, the host and the platform', () => {
    for (const report of reports) {
      expect(report.versions).toEqual(versions);
      expect(report.limitations.length).toBeGreaterThan(0);
    }
  });

  it('[HOST-280] says what it does not claim: of others, of obedience, of a stopped session, of what is lost elsewhere', () => {
    for (const report of reports) {
      const text = report.limitations.join('\n');
      expect(text).toMatch(/Other accounts and other releases of the host may behave otherwise\./);
      expect(text).toMatch(/That a model does what a message asks is not claimed/);
      expect(text).toMatch(/Nothing is claimed of a stopped session: it is not woken\./);
      expect(text).toMatch(/That nothing was lost outside this run is not claimed\./);
      for (const one of report.limitations) expect(asText(report)).toContain(one);
    }
  });

  it('says so where nobody could look whether somebody sat there', () => {
    const unseen = reportOf({ ...run, ...judge(run), attendance: 'unseen' });
    expect(unseen.limitations.at(-1)).toMatch(/could not be looked at/);
  });
});

describe('what the owner typed', () => {
  it('identifies an integration by its name', () => {
    expect(['plugin:postbell:postbell', 'Postbell', '', 'y', 'other'].map(namesServer)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(
      ['SessionStart, Stop', 'sessionstart stop userpromptsubmit', 'Stop', 'yes', ''].map(namesHooks),
    ).toEqual([true, true, false, false, false]);
  });

  it('a session without the bell that is checked, or without anybody, is none', () => {
    expect(unfit({ bell: 'listener', unattended: false }, false)).toBeUndefined();
    expect(unfit({ bell: 'channel', unattended: false }, true)).toBeUndefined();
    expect(unfit({ bell: 'listener', unattended: true }, false)).toMatch(/^print mode is refused/);
    expect(unfit({ bell: 'none', unattended: false }, false)).toMatch(/no bell/);
    expect(unfit({ bell: 'listener', unattended: false }, true)).toMatch(/rung by its listener/);
  });
});
