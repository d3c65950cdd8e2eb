// The rules of the truth table catch each lie that they are for.

import { describe, expect, it } from 'vitest';
import { contradictions, type Posted, type Sight, words } from '../hosts/truth/rules.ts';

const accepted = (over: Partial<Posted> = {}): Posted => ({
  told: { answer: 'accepted', presence: 'live', message_id: 'msg_1' },
  atAnswer: ['attempt', 'host_accept'],
  atEnd: [
    { receipt_kind: 'attempt' },
    { receipt_kind: 'host_accept', delivery_state: { intake: 'recorded', target_session: 'live' } },
    { receipt_kind: 'intake' },
    { receipt_kind: 'ack' },
  ],
  state: 'receiver_acknowledged',
  body: true,
  acknowledged: true,
  ...over,
});
const there = { session: 'live', name: ['live'] } as const;
const away = { session: 'absent', name: [] } as const;
const sight = (over: object = {}): Sight =>
  ({ exact: accepted(), seen: [there, there, there], fetched: true, notified: 'notice', ...over }) as Sight;
const refused = (answer: string, presence = 'gone', message_id: string | null = 'msg_1') =>
  accepted({
    told: { answer, presence, ...(message_id !== null && { message_id }) },
    atAnswer: [],
    atEnd: [],
    state: 'receiver_stored',
    body: false,
    acknowledged: false,
  });
const nothing = { fetched: false, notified: 'nothing' };

describe('a look in which all agree', () => {
  it.each([
    ['accepted / live / live / took it in', sight()],
    [
      'not_live / gone / absent / nothing',
      sight({ exact: refused('not_live'), seen: [away, away, away], ...nothing }),
    ],
    [
      'store_busy / store_busy / live / nothing',
      sight({
        exact: { ...refused('store_busy'), told: { answer: 'store_busy' } },
        byName: { ...refused('store_busy'), told: { answer: 'store_busy' } },
        ...nothing,
      }),
    ],
  ])('is %s', (said, seen) => {
    expect([words(seen), contradictions(seen)]).toEqual([said, []]);
  });
});

describe('a lie', () => {
  const pending = [{ receipt_kind: 'attempt' }, { receipt_kind: 'host_accept' }];
  it.each<[string, string, Sight]>([
    [
      'accepted without a receipt',
      'host_accept differ',
      sight({ exact: accepted({ atAnswer: ['attempt'] }) }),
    ],
    [
      'accepted without an attempt',
      'without an attempt',
      sight({ exact: accepted({ atAnswer: ['host_accept'] }) }),
    ],
    ['accepted by nobody', 'not discovered live', sight({ seen: [away, away, there] })],
    ['not there, and there', 'and yet it was there', sight({ exact: refused('not_live'), ...nothing })],
    ['no bell, and a bell', 'not deaf', sight({ exact: refused('no_bell'), ...nothing })],
    ['no router, and a router', 'one answers', sight({ exact: refused('router_unreachable'), ...nothing })],
    [
      'time-out, nobody asked',
      'a time-out',
      sight({ exact: refused('host_outcome_timeout', 'live'), ...nothing }),
    ],
    [
      'refused, accepted later',
      'by itself later',
      sight({
        exact: { ...refused('not_live'), atEnd: pending },
        seen: [away, away, there],
        ...nothing,
      }),
    ],
    [
      'live, and no card',
      'no card of the name',
      sight({ exact: refused('not_live', 'live'), seen: [away, away, away], ...nothing }),
    ],
    [
      'deaf, and live',
      'discover shows otherwise',
      sight({ exact: accepted({ told: { answer: 'accepted', presence: 'deaf', message_id: 'm' } }) }),
    ],
    [
      'gone, and a card',
      'a card of the name is there',
      sight({ exact: refused('not_live', 'gone'), ...nothing }),
    ],
    [
      'not checked, and checked',
      'discover answers',
      sight({ exact: refused('not_live', 'not_checked'), ...nothing }),
    ],
    [
      'kept, and no id',
      'without a message id',
      sight({ exact: refused('not_live', 'gone', null), seen: [away, away, away], ...nothing }),
    ],
    ['intake by nobody', 'intake and the call', sight({ exact: accepted({ acknowledged: false }) })],
    ['ack by nobody', 'ack and the call', sight({ exact: accepted({ acknowledged: false }) })],
    ['a body pushed', 'did not fetch', sight({ fetched: false })],
    ['acknowledged unseen', 'never had the body', sight({ exact: accepted({ body: false }) })],
    [
      'a state that says more',
      'the state is',
      sight({ exact: accepted({ acknowledged: false, atEnd: pending }) }),
    ],
    [
      'rung, and nobody there',
      'nobody was there',
      sight({
        exact: { ...refused('not_live'), state: 'host_queued' },
        seen: [away, away, away],
        ...nothing,
      }),
    ],
    [
      'two words for intake',
      'two words',
      sight({
        exact: accepted({
          atEnd: [
            { receipt_kind: 'host_accept', delivery_state: { intake: 'pending', target_session: 'live' } },
            { receipt_kind: 'intake' },
            { receipt_kind: 'ack' },
          ],
        }),
      }),
    ],
    ['target live, and absent', 'live and absent', sight({ seen: [there, there, away] })],
    ['dead, and live', 'long dead', sight({ deadMs: 10_001 })],
  ])('%s is found', (_, what, seen) => {
    expect(contradictions(seen).join('; ')).toContain(what);
  });
});
