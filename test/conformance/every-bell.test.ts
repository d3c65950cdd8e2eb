// What holds for every bell of the product alike, and what each says of its own limits.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { queueBell } from '../../src/hosts/codex/bell.ts';
import { midTurn } from '../../src/mailbox/mid-turn.ts';
import { waitingFor } from '../../src/mailbox/remind.ts';
import { stopGate } from '../../src/mailbox/stop-gate.ts';
import { ledgersIn } from '../../src/platform/ledgers.ts';
import type { BellState, RingItem, RingOutcome } from '../../src/ports/bell.ts';
import { errorCodes } from '../../src/protocol/errors.ts';
import { utf8Bytes } from '../../src/protocol/json.ts';
import { reminderLines } from '../../src/protocol/reminder.ts';
import { post, posted, refused } from '../contract/desk.ts';
import { root } from '../process/postbell.ts';
import { type Adapter, acp, channel, listener, type MakeAdapter, queue } from './adapters.ts';
import { managed } from './fixture-managed.ts';
import { type Belled, openBelled, ringing, toSession } from './scene.ts';

const die = ({ host }: Adapter): void => {
  host.script = 'dead';
};
/** The last word is how it comes not to know what its host did. */
const bells: [string, MakeAdapter, (adapter: Adapter) => void][] = [
  ['the listener', listener, (one) => void one.fallSilent()],
  ['the channel', channel, (one) => void one.fallSilent()],
  ['the queue of Codex', queue, (one) => void one.fallSilent()],
  ['a turn of an app-server', managed, die],
  ['a prompt at a time', acp, die],
];
const makers = bells.map(([, make]) => make);
/** More than a ring takes, and less than brings the next. */
const afterOneRingMs = 29_000;

/** What its bell answers from now on. */
function outcomesOf(s: Belled): RingOutcome[] {
  const heard: RingOutcome[] = [];
  const { ring } = s.bell;
  s.bell.ring = async (...call) => {
    const outcome = await ring(...call);
    heard.push(outcome);
    return outcome;
  };
  return heard;
}

describe.each(bells)('[HOST-001] %s', (_name, make, loseTrack) => {
  let s: Belled;
  let heard: RingOutcome[];
  beforeEach(async () => {
    s = await openBelled(make);
    await s.attach();
    heard = outcomesOf(s);
  });

  it('accepts by its evidence, not before, and says which ring it was', async () => {
    const { answer } = s.fallSilent();
    const answered = post(s.desk, toSession);
    await s.desk.clock.advance(1_000);
    expect([heard, s.desk.counts().host_accept]).toEqual([[], 0]);
    s.mend();
    answer();
    await s.desk.clock.advance(0);
    await answered;
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatchObject({
      outcome: 'accepted',
      receipt: { notification_id: expect.stringMatching(/^[0-9a-f]{12}$/), state: s.acceptedState },
    });
    expect(s.desk.counts().host_accept).toBe(1);
  });

  it('rejects with a failure code and whether repeating can help; a row of ours cannot be refused', async () => {
    s.refuse();
    const { details } = refused(await post(s.desk, toSession));
    expect(errorCodes).toContain(details?.reason);
    expect(s.desk.counts().host_accept).toBe(0);
    if (s.evidence === 'row') return expect([heard, s.faults]).toEqual([[], [expect.any(Error)]]);
    expect(heard).toEqual([
      { outcome: 'rejected', code: details?.reason, permanent: expect.any(Boolean) as boolean },
    ]);
  });

  it('does not know where the host may have taken it: that is never an acceptance', async () => {
    loseTrack(s);
    const answer = post(s.desk, toSession);
    await s.desk.clock.advance(afterOneRingMs);
    expect(refused(await answer)).toMatchObject({ code: 'recipient_unavailable' });
    const [attempt] = s.desk.rows('SELECT state, failure_code FROM attempt');
    expect(attempt).toEqual({ state: 'adapter_failed', failure_code: 'host_outcome_timeout' });
    for (const outcome of heard) expect(outcome.outcome).toBe('unknown');
    await s.desk.clock.advance(600_000);
    expect(s.desk.counts().host_accept).toBe(0);
    const [message_id = ''] = s.waiting();
    expect(s.stateOf(message_id, 's1')).not.toBe(s.acceptedState);
  });
});

/** What each bell gave its host for the same message, with its own id made that of all. */
async function textsOf(over: object): Promise<string[]> {
  const texts: string[] = [];
  for (const make of makers) {
    const s = await openBelled(make);
    await s.attach();
    s.startNotifier();
    await posted(s.desk, { ...over });
    await s.desk.clock.advance(1_000);
    expect(s.rings()).toHaveLength(1);
    texts.push((s.rings()[0]?.text ?? '').replaceAll(/[0-9a-f]{12}(?=")/g, 'same'));
  }
  return texts;
}

const claims = {
  sender: 'CLAIMED-SENDER',
  task_id: 'CLAIMED-TASK',
  correlation_id: 'CLAIMED-THREAD',
  payload: `SENTINEL${'x'.repeat(60 * 1_024)}`,
};

it('[HOST-004] the same notice is the same text through all, and stands before what Codex needs beside it', async () => {
  const [printed = '', ...others] = await textsOf(claims);
  expect(printed).toMatch(/^\[Postbell inbox notice\]\n1 message waits for this session/);
  const [pushed, queued, began, prompted] = others;
  expect([pushed, prompted]).toEqual([printed, printed]);
  expect(began).toBe(queued);
  expect(queued?.startsWith(`${printed}\nIt is about:\n`)).toBe(true);
  // One renderer each, called in one place.
  const calling = (word: RegExp) =>
    readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && word.test(readFileSync(path.join(root, 'src', file), 'utf8')),
    );
  expect(calling(/\brenderNotice\(\{ notification_id, \.\.\./)).toEqual(['mailbox/ring.ts']);
  expect(calling(/(?<!function )\brenderWhole\(/)).toEqual(['mailbox/ring.ts']);
  expect(calling(/\[Postbell inbox notice\]|<postbell-message>/).sort()).toEqual([
    'protocol/notices.ts',
    'protocol/whole.ts',
  ]);
});

it('[INB-026] a notice has an id, counts and the names of tools, and neither a body nor words of its sender', async () => {
  for (const text of await textsOf(claims)) {
    expect(text).toMatch(/1 message waits for this session\. notification_id="same"/);
    for (const tool of ['receive_messages', 'acknowledge_messages', 'message']) expect(text).toContain(tool);
    expect(text).not.toMatch(/SENTINEL|CLAIMED/);
  }
});

it('a whole message is shown by a channel alone', async () => {
  const shown: string[][] = [];
  for (const make of makers) {
    const s = await openBelled(make);
    shown.push([...s.bell.describe().contents]);
    await s.attach();
    await posted(s.desk, { ...toSession, payload: 'SENTINEL' });
    expect(JSON.stringify(s.rings()).includes('SENTINEL')).toBe(make === channel);
  }
  expect(shown).toEqual(makers.map((make) => (make === channel ? ['notice', 'full'] : ['notice'])));
});

const item: RingItem = {
  content: 'notice',
  notification_id: 'ab12ab12ab12',
  text: 'a notice',
  covered: [],
  session_id: 's1',
};

describe('[HOST-005] the state of a bell', () => {
  it.each(bells)('of %s is cheap, rings nothing and changes nothing', async (_name, make) => {
    const s = await openBelled(make);
    await posted(s.desk);
    const look = () => [s.desk.counts(), s.host.given.length, readdirSync(s.desk.directory).sort()];
    s.bell.state();
    const before = look();
    const took: number[] = [];
    for (let n = 0; n < 1_000; n += 1) {
      const began = performance.now();
      s.bell.state();
      took.push(performance.now() - began);
    }
    expect(took.toSorted((a, b) => a - b)[990]).toBeLessThan(50);
    expect(look()).toEqual(before);
  });

  it('busy is a turn that runs, unarmed a listener that is not there, refused a host that cannot be rung', async () => {
    const states: Record<string, BellState[]> = {};
    for (const [name, make] of bells) {
      const s = await openBelled(make);
      const idle = s.bell.state();
      s.host.startTurn();
      const inTurn = s.bell.state();
      s.host.endTurn();
      await s.desk.clock.advance(0);
      states[name] = [idle, inTurn, s.bell.state()];
    }
    const [ready, busy, unarmed] = (['ready', 'busy', 'unarmed'] as const).map((state) => ({ state }));
    expect(states).toEqual({
      'the listener': [unarmed, unarmed, unarmed],
      // These take notices in a turn as well, and say nothing of turns.
      'the channel': [ready, ready, ready],
      'the queue of Codex': [ready, ready, ready],
      'a turn of an app-server': [ready, busy, ready],
      'a prompt at a time': [ready, busy, ready],
    });
    const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';
    const rejected = { outcome: 'rejected', code: 'thread_unavailable', permanent: true } as const;
    const bell = queueBell({ thread, queue: async () => rejected });
    expect(bell.state()).toEqual(ready);
    expect(await bell.ring(item, new AbortController().signal)).toEqual(rejected);
    expect(bell.state()).toEqual({ state: 'refused', reason: 'thread_unavailable' });
  });
});

describe.each(bells)('[HOST-008] the process of %s is killed', (_name, make) => {
  const steps: [string, (s: Belled) => Promise<void>][] = [
    ['before it rings', async () => {}],
    [
      'in the midst of a ring',
      async (s) => {
        s.fallSilent();
        s.startNotifier();
        await s.desk.clock.advance(1_000);
      },
    ],
    [
      'after an acceptance',
      async (s) => {
        s.startNotifier();
        await s.desk.clock.advance(1_000);
      },
    ],
  ];

  it.each(steps)(
    '%s: the next one carries on from the store, and from nothing else',
    async (_when, until) => {
      const s = await openBelled(make);
      s.host.ignores = true;
      await s.attach();
      s.desk.onNotify = () => ({ delivered: false, reason: 'dispatched' });
      await posted(s.desk);
      const kills: (() => void)[] = [];
      const { startNotifier } = s;
      s.startNotifier = () => {
        const kill = startNotifier();
        kills.push(kill);
        return kill;
      };
      await until(s);
      for (const kill of kills) kill();
      const next = await openBelled(make, s.desk);
      next.host.ignores = true;
      const before = next.rings().length;
      next.startNotifier();
      await s.desk.clock.advance(31_000);
      expect(next.rings().length - before).toBeGreaterThan(0);
      expect(next.waiting()).toHaveLength(1);
      const files = readdirSync(s.desk.directory, { recursive: true, encoding: 'utf8' });
      // The lock is of the notifier, and of no bell.
      expect(files.filter((file) => !/^(?:postbell\.db(-wal|-shm)?|notifier-s1\.lock)$/.test(file))).toEqual(
        [],
      );
    },
  );
});

describe('[HOST-013] hand-offs that may be unanswered at once', () => {
  it('are 64, or one where a busy host is waited for', async () => {
    const pending: number[] = [];
    for (const make of makers) pending.push((await openBelled(make)).bell.describe().pendingMax);
    expect(pending).toEqual([64, 64, 64, 1, 1]);
  });

  it.each(bells)('by %s: the 65th is refused as busy, the others wait and are kept', async (_name, make) => {
    const s = await openBelled(make);
    await s.attach();
    s.fallSilent();
    s.host.startTurn();
    const sends = [];
    for (let n = 0; n < 64; n += 1) sends.push(post(s.desk, toSession));
    for (let n = 0; n < 5; n += 1) await s.desk.clock.advance(0);
    const last = refused(await post(s.desk, toSession));
    expect(last).toMatchObject({ code: 'recipient_unavailable', details: { reason: 'busy' } });
    if (s.bell.describe().pendingMax === 1) expect(s.rings()).toEqual([]);
    await s.desk.clock.advance(12_000);
    await Promise.all(sends);
    expect(s.desk.rows('SELECT count(*) AS kept FROM delivery WHERE open = 1')).toEqual([{ kept: 65 }]);
  });

  it('a queue of Codex that is full says so: 100 items are its own limit', async () => {
    const full: MakeAdapter = (scene, onText) => {
      const adapter = queue(scene, onText);
      const rejected = { outcome: 'rejected', code: 'adapter_queue_full', permanent: false } as const;
      const bell = queueBell({
        thread: '01a2359b-9716-7d71-8e13-ff19cf36a487',
        queue: async (notice) => {
          if (adapter.host.given.length >= 100) return rejected;
          expect(utf8Bytes(notice)).toBeLessThanOrEqual(12_288);
          await adapter.host.call(notice);
          return { outcome: 'queued' };
        },
      });
      return { ...adapter, bell };
    };
    const s = await openBelled(full);
    await s.attach();
    s.host.ignores = true;
    for (let n = 0; n < 100; n += 1) await posted(s.desk, toSession);
    expect(s.rings()).toHaveLength(100);
    const answer = post(s.desk, toSession);
    await s.desk.clock.advance(10_000);
    expect(refused(await answer)).toMatchObject({
      code: 'recipient_unavailable',
      details: { reason: 'adapter_queue_full' },
    });
  });
});

describe.each(bells)('[INB-091] progress by %s', (_name, make) => {
  it('wakes, reminds, blocks and reserves nothing, by whatever road', async () => {
    const s = await openBelled(make);
    await s.attach();
    s.startNotifier();
    for (const [nth, over] of [{}, {}, toSession].entries())
      await posted(s.desk, { ...over, task_id: `t${nth}`, status: 'update' });
    await s.desk.clock.advance(1_800_000);
    expect([s.rings(), s.host.given, s.desk.counts().reservation, s.desk.counts().host_accept]).toEqual([
      [],
      [],
      0,
      0,
    ]);
    const addressee = { recipient: 'bob', session: 's1' };
    const groups = s.desk.store.read((tx) => waitingFor(tx, addressee, s.desk.clock.nowMs()));
    expect(reminderLines('bob', groups)).toEqual([]);
    expect(await midTurn(s.desk, ringing)).toEqual([]);
    const printed: string[] = [];
    await stopGate({
      store: s.desk.store,
      clock: s.desk.clock,
      ledgers: ledgersIn(path.join(s.desk.directory, 'stop-gate')),
      addressee,
      session: 's1',
      active: false,
      begin: async () => {},
      cover: async () => async () => {},
      print: (reason) => printed.push(reason),
    });
    expect([printed, s.desk.counts().reservation]).toEqual([[], 0]);
    expect(s.waiting()).toHaveLength(3);
    // Of a question the same roads speak.
    await posted(s.desk, { task_id: 'u', status: 'needs_input' });
    await s.desk.clock.advance(1_000);
    expect(s.desk.counts().reservation).toBe(1);
  });
});
