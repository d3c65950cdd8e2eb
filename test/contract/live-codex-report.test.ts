// What the owner-run live check of Codex says of what it saw.

import { describe, expect, it } from 'vitest';
import { judgeCodex, reportOfCodex } from '../../tools/live-codex-report.mjs';
import { asText } from '../../tools/live-report.mjs';

const thread = '0199aaaa-0000-7000-8000-000000000001';
const at = (second: number) => `2030-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const card = {
  session_id: thread,
  principal_id: `codex-thread-${thread}`,
  bell: 'codex-queue',
  generation: 1,
};

const accepted = {
  receipt_kind: 'host_accept',
  source: 'host_accept',
  value: 'notice',
  adapter_kind: 'codex-queue',
  recorded_at: at(2),
};
const intake = {
  receipt_kind: 'intake',
  source: 'receipt',
  value: 'ingested',
  actor: thread,
  caller_session: thread,
  recorded_at: at(5),
};
const reply = {
  message_id: 'msg_b',
  reply_to: 'msg_a',
  payload: 'the code is CODE',
  provenance: { transport: 'mcp', session: thread },
};
const reminded = { hook: 'prompt', host: 'codex', outcome: 'notified', reason: 'lines: 1', time: at(3) };
const rung = {
  code: 'CODE',
  sentAt: at(1),
  sent: { message_id: 'msg_a' },
  session: card,
  receipts: [accepted, intake] as object[],
  inbox: [reply] as object[],
  records: [] as object[],
};
const again = { ...card, generation: 2 };
const ended = {
  code: 'CODE',
  sent: { message_id: 'msg_c', refusal: 'recipient_unavailable' } as object,
  discovery: { healthy: true, live: false },
  fetched: { message_id: 'msg_c', payload: 'with CODE in it' } as object | undefined,
};
const seen = {
  start: { session: card, hooked: true },
  delivery: rung,
  resumed: { session: again, hooked: true },
  redelivery: { ...rung, session: again },
  ended,
};

const judged = (more: object) => judgeCodex({ ...seen, ...more });
const rowOf = (more: object, id: string) => judged(more).rows.find((row) => row.id === id);

/** Of the row that fails alone, with its words. */
function failsAlone(more: object, id: string, text: RegExp): void {
  const verdict = judged(more);
  expect(verdict.result).toBe('not passed');
  expect(verdict.rows.filter(({ result }) => result !== 'pass')).toEqual([
    { id, result: 'fail', text: expect.stringMatching(text) },
  ]);
}

describe('a whole run', () => {
  it('[SES-153] has a row each for the start, native delivery, resume and the stopped session, of one thread', () => {
    expect(judged({}).rows.map(({ id, result }) => [id, result])).toEqual([
      ['session-start', 'pass'],
      ['native-delivery', 'pass'],
      ['resume', 'pass'],
      ['stopped-session', 'pass'],
    ]);
    expect(judged({}).result).toBe('passed');
  });

  it('that ended early has no pass in what was not reached, and says why', () => {
    const { result, rows } = judgeCodex({ start: seen.start }, 'it was given up');
    expect(result).toBe('stopped');
    expect(rows.map((row) => [row.id, row.result])).toEqual([
      ['session-start', 'pass'],
      ['native-delivery', 'fail'],
      ['resume', 'fail'],
      ['stopped-session', 'fail'],
      ['stopped', 'fail'],
    ]);
    expect(judgeCodex({}).result).toBe('not passed');
  });
});

describe('the start', () => {
  it('needs the record of a hook, and the queue as its bell', () => {
    failsAlone({ start: { session: card, hooked: false } }, 'session-start', /no hook/);
    failsAlone(
      { start: { session: { ...card, bell: 'none' }, hooked: true } },
      'session-start',
      /the bell none/,
    );
  });
});

describe.each([
  ['native-delivery', 'delivery', card],
  ['resume', 'redelivery', again],
] as const)('%s', (id, stage, session) => {
  const of = (more: object) => ({ [stage]: { ...rung, session, ...more } });

  it('needs the thread\u2019s own intake and its answer with the code: a queue that accepted is no pass', () => {
    failsAlone(
      of({ receipts: [accepted], inbox: [] }),
      id,
      /the queue took a notice .* proves no reading; .*no call/,
    );
    for (const other of [
      { ...intake, actor: 'somebody' },
      { ...intake, caller_session: 'another' },
      { ...intake, receipt_kind: 'ack' },
      { ...intake, source: 'host_accept' },
    ])
      failsAlone(of({ receipts: [accepted, other] }), id, /no call of its own/);
    for (const other of [
      { ...reply, payload: 'done' },
      { ...reply, reply_to: 'msg_c' },
      { ...reply, provenance: { transport: 'cli', session: thread } },
      { ...reply, provenance: { transport: 'mcp', session: 'another' } },
      { ...reply, provenance: undefined },
    ])
      failsAlone(of({ inbox: [other] }), id, /no answer of the thread with the code/);
  });

  it('needs the queue to have been first: no reminder, and no look of its own, before it', () => {
    failsAlone(of({ receipts: [intake] }), id, /took no notice/);
    const other = { ...accepted, adapter_kind: 'codex-app-server' };
    failsAlone(of({ receipts: [other, intake] }), id, /took no notice/);
    failsAlone(of({ receipts: [accepted, { ...intake, recorded_at: at(1) }] }), id, /looked by itself/);
    failsAlone(of({ records: [{ ...reminded, time: at(1) }] }), id, /before anything was queued/);
    // The prompt that the queue itself starts brings one, too; and what was told before the send is of other mail.
    const records = [
      reminded,
      { ...reminded, time: at(0) },
      { ...reminded, outcome: 'skipped', time: at(1) },
    ];
    expect(rowOf(of({ records }), id)?.result).toBe('pass');
  });
});

describe('a resumed thread', () => {
  it('is the same one, under a new registration', () => {
    failsAlone({ resumed: { session: card } }, 'resume', /not registered anew/);
    failsAlone({ resumed: { session: { ...again, session_id: 'other' } } }, 'resume', /another thread/);
  });
});

describe('[SES-152] recipient_unavailable for a stopped session', () => {
  it('counts only together with a healthy discovery and a durable fetch', () => {
    const of = (more: object) => ({ ended: { ...ended, ...more } });
    failsAlone(of({ discovery: { healthy: false, live: false } }), 'stopped-session', /no router answered/);
    failsAlone(of({ discovery: { healthy: true, live: true } }), 'stopped-session', /the thread is live/);
    for (const fetched of [
      undefined,
      { message_id: 'msg_c', payload: 'other' },
      { message_id: 'msg_x', payload: 'CODE' },
      { message_id: 'msg_c' },
    ])
      failsAlone(of({ fetched }), 'stopped-session', /could not be fetched/);
    for (const sent of [{ message_id: 'msg_c' }, { message_id: 'msg_c', refusal: 'router_unreachable' }])
      failsAlone(
        of({ sent }),
        'stopped-session',
        /was answered (?:as if it were reached|router_unreachable)/,
      );
  });
});

describe('the report', () => {
  const versions = { postbell: '1.2.3', node: '20.1.0', host: '0.171.0', platform: 'linux x64 6.1' };
  const report = reportOfCodex({ ...judged({}), codexHome: '/home/me/codex', day: '2030-01-01', versions });

  it('[SES-157] names the versions, and says what it does not show', () => {
    expect(report).toMatchObject({ check: 'codex', result: 'passed', day: '2030-01-01', versions });
    const text = asText(report);
    for (const one of report.limitations) expect(text).toContain(one);
    expect(text).toMatch(/Nothing is claimed of a stopped session: it is not woken\./);
    expect(text).toMatch(/of the account nothing was looked at but that \/home\/me\/codex is logged in/);
    expect(text).toMatch(/nobody typed into the session after a send/);
  });
});
