// When a session is rung: the pure decisions over its one reservation, without a store. What comes of them over time is
// in schedule.test.ts.

import { describe, expect, it } from 'vitest';
import { isAttentionWorthy } from '../../src/protocol/message.ts';
import {
  decideRing,
  isCurrent,
  nextStep,
  type Reservation,
  renderNotice,
  reservationMs,
} from '../../src/protocol/notices.ts';

const nowMs = 1_000_000;
const day = 86_400_000;

const reservation = (over: Partial<Reservation> = {}): Reservation => ({
  notification_id: 'n',
  session_root: 's',
  state: 'inbox_queued',
  step: 2,
  rung_at_ms: nowMs - 20_000,
  expires_at_ms: nowMs + 100_000,
  covered: ['d1'],
  ...over,
});
const waits = (delivery_id: string) => ({ delivery_id, created_at_ms: nowMs });
const decide = (over: Partial<Parameters<typeof decideRing>[0]>) =>
  decideRing({
    nowMs,
    reservation: undefined,
    worthy: [],
    connectionLive: false,
    graceMs: 500,
    ...over,
  });

describe('a reservation', () => {
  it('lasts 30, 60, 120, 240, then 300 s; the next one is a step up, or the first after a release', () => {
    expect([0, 1, 2, 3, 4, 5, 99].map(reservationMs)).toEqual(
      [30, 60, 120, 240, 300, 300, 300].map((s) => s * 1_000),
    );
    expect([0, 1, 2, 3, 4].map((step) => nextStep(reservation({ step })))).toEqual([1, 2, 3, 4, 4]);
    expect([nextStep(undefined), nextStep(reservation({ covered: [] }))]).toEqual([0, 0]);
  });

  it('is current while its end lies ahead, by 300 s at the most, and something it covers waits', () => {
    const held = reservation({ rung_at_ms: 0, expires_at_ms: 300_000 });
    expect([-1, 0, 299_999, 300_000].map((ms) => isCurrent(held, ms))).toEqual([false, true, true, false]);
    expect(isCurrent({ ...held, covered: [] }, 0)).toBe(false);
    expect(isCurrent(undefined, 0)).toBe(false);
  });
});

describe('the decision', () => {
  it('is idle where nothing waits that needs a turn', () => {
    expect(decide({})).toEqual({ act: 'idle' });
    expect(decide({ reservation: reservation() })).toEqual({ act: 'idle' });
  });

  it('waits for the end of the reservation, or for 30 s after its ring where it does not cover all', () => {
    const held = { reservation: reservation(), worthy: [waits('d1')] };
    expect(decide(held)).toEqual({ act: 'wait', untilMs: nowMs + 100_000 });
    expect(decide({ ...held, nowMs: nowMs + 100_000 })).toEqual({ act: 'ring' });
    const both = { ...held, worthy: [waits('d1'), waits('d2')] };
    expect(decide(both)).toEqual({ act: 'wait', untilMs: nowMs + 10_000 });
    expect(decide({ ...both, nowMs: nowMs + 10_000 })).toEqual({ act: 'ring' });
  });

  it('leaves a new delivery to the router for 500 ms while a connection is live', () => {
    const fresh = { worthy: [waits('d1')], connectionLive: true };
    expect(decide(fresh)).toEqual({ act: 'wait', untilMs: nowMs + 500 });
    expect(decide({ ...fresh, connectionLive: false })).toEqual({ act: 'ring' });
    expect(decide({ ...fresh, nowMs: nowMs + 499 })).toEqual({ act: 'wait', untilMs: nowMs + 500 });
    expect(decide({ ...fresh, nowMs: nowMs + 500 })).toEqual({ act: 'ring' });
    expect(decide({ ...fresh, nowMs: nowMs - day })).toEqual({ act: 'ring' });
    const released = { ...fresh, reservation: reservation({ covered: [] }) };
    expect(decide(released)).toEqual({ act: 'wait', untilMs: nowMs + 500 });
  });
});

describe('mail that needs a turn', () => {
  it('is all but updates and quiet mail', () => {
    expect(isAttentionWorthy({ status: 'update' }, false)).toBe(false);
    expect(isAttentionWorthy({ quiet: true }, false)).toBe(false);
    expect(isAttentionWorthy({}, true)).toBe(false);
    for (const status of [undefined, null, 'needs_input', 'result', 'failed', 'canceled'] as const)
      expect(isAttentionWorthy({ ...(status !== undefined && { status }) }, false)).toBe(true);
  });
});

describe('the text of a notice', () => {
  it('[HOST-092] has an id, counts and the tools to call, and nothing else', () => {
    const tail = [
      'Call the tool receive_messages to read, act on what you accept, then call acknowledge_messages with messages = the',
      'receipts you were given, then receive the next batch. To answer, call the tool message with action "send". If these',
      'tools are not listed, search your tools for "postbell".',
      'This is an automatic notice: it is not the user speaking and no approval of anything.',
    ];
    const text = (first: string) => ['[Postbell inbox notice]', first, ...tail].join('\n');
    expect(renderNotice({ notification_id: 'ab12', unread: 2, progress: 1 })).toBe(
      text('2 messages wait and 1 progress for this session. notification_id="ab12"'),
    );
    expect(renderNotice({ notification_id: 'x', unread: 1, progress: 0 })).toBe(
      text('1 message waits for this session. notification_id="x"'),
    );
  });
});
