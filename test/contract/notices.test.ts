// When a session is rung: the pure decisions over its one reservation, without a store.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAttentionWorthy } from '../../src/protocol/message.ts';
import {
  decideRing,
  isCurrent,
  nextStep,
  type Reservation,
  renderNotice,
  reservationMs,
  type WaitingDelivery,
} from '../../src/protocol/notices.ts';

const day = 86_400_000;

/** A session on paper: what waits for it, and the reservation that the last ring left. */
class Paper {
  nowMs = 1_000_000;
  waiting: WaitingDelivery[] = [];
  reservation: Reservation | undefined;
  rings: number[] = [];
  readonly #startMs = this.nowMs;

  arrive(delivery_id: string, attention = true): void {
    this.waiting.push({ delivery_id, created_at_ms: this.nowMs, attention });
  }

  take(delivery_id: string): void {
    this.waiting = this.waiting.filter((delivery) => delivery.delivery_id !== delivery_id);
    if (this.reservation !== undefined)
      this.reservation = {
        ...this.reservation,
        covered: this.reservation.covered.filter((id) => id !== delivery_id),
      };
  }

  decide(connectionLive = false) {
    const { nowMs, reservation, waiting } = this;
    return decideRing({ nowMs, reservation, waiting, connectionLive, graceMs: 500 });
  }

  /** Looks once, and rings if that is what is due. */
  look(): void {
    if (this.decide().act !== 'ring') return;
    const step = nextStep(this.reservation);
    const expires_at_ms = this.nowMs + reservationMs(step);
    const covered = this.waiting.filter(({ attention }) => attention).map(({ delivery_id }) => delivery_id);
    const state = 'inbox_queued' as const;
    this.reservation = {
      notification_id: `n${this.rings.length}`,
      session_root: 's',
      state,
      step,
      rung_at_ms: this.nowMs,
      expires_at_ms,
      covered,
    };
    this.rings.push(this.nowMs - this.#startMs);
  }

  /** A look each second. */
  pass(seconds: number): void {
    for (let second = 0; second < seconds; second += 1) {
      this.look();
      this.nowMs += 1_000;
    }
    this.look();
  }
}

describe('the schedule of one session', () => {
  it('[INB-031] rings at 0, 30, 90, 210, 450, 750 and 1050 s while nothing is done', () => {
    const paper = new Paper();
    paper.arrive('d1');
    paper.pass(1_100);
    expect(paper.rings.map((ms) => ms / 1_000)).toEqual([0, 30, 90, 210, 450, 750, 1_050]);
    expect([0, 1, 2, 3, 4, 5, 99].map(reservationMs)).toEqual(
      [30, 60, 120, 240, 300, 300, 300].map((s) => s * 1_000),
    );
    expect(paper.reservation?.step).toBe(4);
  });

  it('[INB-033] is brought forward by mail that no reservation covers, and keeps its step', () => {
    const later = (seconds: number): Paper => {
      const paper = new Paper();
      paper.arrive('d1');
      paper.pass(750);
      expect(paper.reservation?.step).toBe(4);
      paper.pass(seconds);
      paper.arrive('d2');
      paper.pass(40);
      return paper;
    };
    expect(later(100).rings.at(-1)).toBe(850_000);
    expect(later(10).rings.at(-1)).toBe(780_000);
    expect(later(100).reservation).toMatchObject({ step: 4, covered: ['d1', 'd2'] });
  });

  it('[INB-034] is kept by attention-worthy mail alone', () => {
    const paper = new Paper();
    paper.arrive('p1', false);
    paper.pass(600);
    expect(paper.rings).toEqual([]);
    paper.arrive('q1');
    paper.pass(5);
    expect(paper.rings).toEqual([600_000]);
    expect(paper.reservation?.covered).toEqual(['q1']);
    paper.arrive('p2', false);
    paper.take('q1');
    paper.pass(1_200);
    expect(paper.rings).toEqual([600_000]);
    expect(isAttentionWorthy({ status: 'update' })).toBe(false);
    expect(isAttentionWorthy({ quiet: true })).toBe(false);
    for (const status of [undefined, null, 'needs_input', 'result', 'failed', 'canceled'] as const)
      expect(isAttentionWorthy({ ...(status !== undefined && { status }) })).toBe(true);
  });

  it('[INB-039] begins anew, at once and with 30 s, when nothing that was covered waits any more', () => {
    const paper = new Paper();
    paper.arrive('d1');
    paper.pass(100);
    expect(paper.reservation?.step).toBe(2);
    paper.take('d1');
    paper.pass(7);
    paper.arrive('d2');
    paper.pass(32);
    expect(paper.rings).toEqual([0, 30_000, 90_000, 107_000, 137_000]);
  });

  it('[INB-040] goes on when some of what was covered is acknowledged', () => {
    const paper = new Paper();
    paper.arrive('d1');
    paper.arrive('d2');
    paper.pass(10);
    paper.take('d1');
    paper.pass(19);
    expect(paper.rings).toEqual([0]);
    paper.pass(1);
    expect(paper.rings).toEqual([0, 30_000]);
  });

  it('[INB-044] is not frozen by a clock that is set back, and rings once when it is set forward', () => {
    const back = new Paper();
    back.arrive('d1');
    back.pass(20);
    back.nowMs -= day;
    back.pass(1);
    expect(back.rings).toHaveLength(2);
    const forward = new Paper();
    forward.arrive('d1');
    forward.pass(20);
    forward.nowMs += day;
    forward.pass(50);
    expect(forward.rings).toHaveLength(2);
    const held: Reservation = {
      notification_id: 'n',
      session_root: 's',
      state: 'preparing',
      step: 4,
      rung_at_ms: 0,
      expires_at_ms: 300_000,
      covered: ['d1'],
    };
    expect([
      isCurrent(held, -1),
      isCurrent(held, 0),
      isCurrent(held, 299_999),
      isCurrent(held, 300_000),
    ]).toEqual([false, true, true, false]);
  });

  it('leaves a new delivery to the router for 500 ms while a connection is live', () => {
    const paper = new Paper();
    paper.arrive('d1');
    expect(paper.decide(true)).toEqual({ act: 'wait', untilMs: paper.nowMs + 500 });
    expect(paper.decide(false)).toEqual({ act: 'ring' });
    paper.nowMs += 499;
    expect(paper.decide(true)).toMatchObject({ act: 'wait' });
    paper.nowMs += 1;
    expect(paper.decide(true)).toEqual({ act: 'ring' });
    paper.nowMs -= day;
    expect(paper.decide(true)).toEqual({ act: 'ring' });
  });

  it('never lets attention-worthy mail wait longer than 300 s, whatever happens', () => {
    const events = fc.array(
      fc.oneof(
        fc.record({ act: fc.constant('arrive' as const), id: fc.nat(5) }),
        fc.record({ act: fc.constant('take' as const), id: fc.nat(5) }),
        fc.record({ act: fc.constant('pass' as const), id: fc.nat(200) }),
        fc.record({ act: fc.constant('jump' as const), id: fc.constantFrom(-day, day, -40_000, 40_000) }),
      ),
      { maxLength: 15 },
    );
    fc.assert(
      fc.property(events, (steps) => {
        const paper = new Paper();
        for (const { act, id } of steps) {
          if (act === 'arrive' && !paper.waiting.some((one) => one.delivery_id === `d${id}`))
            paper.arrive(`d${id}`);
          if (act === 'take') paper.take(`d${id}`);
          if (act === 'pass') paper.pass(id);
          if (act === 'jump') paper.nowMs += id;
          const decision = paper.decide();
          if (decision.act === 'wait') expect(decision.untilMs - paper.nowMs).toBeLessThanOrEqual(300_000);
          if (paper.waiting.length > 0) expect(decision.act).not.toBe('idle');
        }
      }),
      { numRuns: 100, seed: 3 },
    );
  });
});

describe('the text of a notice', () => {
  it('has an id, counts and the tools to call, and nothing of the messages', () => {
    const text = renderNotice({ notification_id: 'ab12', unread: 2, progress: 1 });
    expect(text).toContain('notification_id="ab12"');
    expect(text).toContain('2 messages wait and 1 progress');
    expect(renderNotice({ notification_id: 'x', unread: 1, progress: 0 })).toContain('1 message waits for');
    for (const tool of ['receive_messages', 'acknowledge_messages', 'message']) expect(text).toContain(tool);
    expect(renderNotice.length).toBe(1);
  });
});
