// Facts and their projections, without a store.

import { describe, expect, it } from 'vitest';
import type { Fact } from '../../src/protocol/receipts.ts';
import { inReceiptOrder } from '../../src/protocol/receipts.ts';
import { bestPresence, type Presence } from '../../src/protocol/session.ts';
import { deliveryState, type HandOffState } from '../../src/protocol/states.ts';

const fact = (name: string, source: Fact['source'], recorded_at: string) =>
  ({ source, recorded_at, value: name }) as unknown as Fact;

describe('receipts', () => {
  it('stand in order of time, then attempt, acceptance, receipt, then as they were recorded', () => {
    const early = '2026-03-01T12:00:00.000Z';
    const late = '2026-03-01T12:00:00.001Z';
    const given = [
      fact('6', 'receipt', late),
      fact('3', 'receipt', early),
      fact('4', 'receipt', early),
      fact('2', 'host_accept', early),
      fact('5', 'attempt', late),
      fact('1', 'attempt', early),
    ];
    expect(inReceiptOrder(given).map(({ value }) => value)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(given[0]?.value).toBe('6');
  });
});

describe('the state of a delivery', () => {
  const handOffs: (HandOffState | undefined)[] = [
    undefined,
    'preparing',
    'inbox_queued',
    'notification_sent',
    'host_queued',
    'delivery_failed',
  ];

  it('is the first row of the table that fits', () => {
    const shown = { undefined: 'receiver_stored', preparing: 'receiver_stored' } as Record<string, string>;
    for (const handOff of handOffs) {
      const state = (acknowledged: boolean, waiting: boolean) =>
        deliveryState({ acknowledged, waiting, handOff });
      expect(state(false, true)).toBe(shown[String(handOff)] ?? handOff);
      expect(state(false, false)).toBe('receiver_stored');
      expect([state(true, true), state(true, false)]).toEqual([
        'receiver_acknowledged',
        'receiver_acknowledged',
      ]);
    }
  });
});

describe('the presence of a principal', () => {
  it('is the best of its sessions', () => {
    const best = (...all: Presence[]) => bestPresence(all);
    expect(best('gone', 'away', 'deaf', 'live')).toBe('live');
    expect(best('gone', 'deaf', 'away')).toBe('deaf');
    expect(best('gone', 'away')).toBe('away');
    expect(best('gone', 'gone')).toBe('gone');
    expect(best()).toBe('unknown');
  });
});
