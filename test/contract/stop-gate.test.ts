// The Stop gate: one block for each message, whatever the host did before; its ledger; and its place beside the listener.

import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { afterGates, gateTurn } from '../../src/mailbox/gate-turn.ts';
import { nextBatch } from '../../src/mailbox/listen.ts';
import { midTurn } from '../../src/mailbox/mid-turn.ts';
import { waitingFor } from '../../src/mailbox/remind.ts';
import { coverTold, takeBackTold } from '../../src/mailbox/reserve.ts';
import { stopGate, type Waiting } from '../../src/mailbox/stop-gate.ts';
import { ledgersIn } from '../../src/platform/ledgers.ts';
import type { GateLedger } from '../../src/ports/ledger.ts';
import { Fault } from '../../src/protocol/errors.ts';
import { gateInstruction, reminderLines } from '../../src/protocol/reminder.ts';
import { locksIn } from '../../src/store/lock.ts';
import { attach, posted, type Scene } from './desk.ts';
import { openRung, type Rung, ringing } from './rung.ts';

let scene: Rung;
let desk: Scene;
let directory: string;
beforeEach(async () => {
  scene = await openRung();
  desk = scene.desk;
  directory = path.join(desk.directory, 'stop-gate');
});

interface Way {
  active?: boolean;
  session?: string;
  print?: () => void;
  cover?: () => Promise<void>;
  ledgers?: ReturnType<typeof ledgersIn>;
}

const inShop = (blocked: readonly Waiting[]): string[] =>
  blocked.filter(({ project }) => project === 'shop').map(({ delivery_id }) => delivery_id);

/** One Stop: what was printed, and what became of it. */
async function stop({ active = false, session = 's1', print, cover, ledgers }: Way = {}) {
  const printed: string[] = [];
  const outcome = await stopGate({
    store: desk.store,
    clock: desk.clock,
    ledgers: ledgers ?? ledgersIn(directory),
    addressee: { recipient: 'bob', session },
    session,
    active,
    begin: async () => {},
    cover: async (root, blocked) => {
      await cover?.();
      const told = await desk.store.write((tx) => coverTold(tx, desk, root, inShop(blocked)));
      return async () => {
        if (told !== undefined) await desk.store.write((tx) => takeBackTold(tx, root, told));
      };
    },
    print: (reason) => {
      print?.();
      printed.push(reason);
    },
  });
  return { printed, ...outcome };
}

const blocked = async (way?: Way): Promise<boolean> => (await stop(way)).printed.length === 1;

describe('the Stop gate', () => {
  it('[HOST-080] says what the prompt hook would, session lines included, and one instruction', async () => {
    await attach(desk, 's1');
    await posted(desk);
    await posted(desk, { project: 'attic' });
    await posted(desk, { recipient: 's1', target_kind: 'session' });
    const addressee = { recipient: 'bob', session: 's1' };
    const lines = reminderLines(
      'bob',
      desk.store.read((tx) => waitingFor(tx, addressee, desk.clock.nowMs())),
    );
    expect(lines).toHaveLength(3);
    expect((await stop()).printed).toEqual([[...lines, gateInstruction].join('\n')]);
  });

  it('[HOST-081] blocks once for each message; another one blocks again, also the first of a sixth project after 600 old ones', async () => {
    for (let nth = 0; nth < 600; nth += 1) await posted(desk, { project: `p${nth % 5}` });
    expect((await stop()).reason).toBe('blocked for 600');
    expect(await blocked()).toBe(false);
    await posted(desk, { project: 'p9' });
    const { printed, reason } = await stop();
    expect(reason).toBe('blocked for 1');
    expect(printed[0]?.split('\n')).toHaveLength(6);
    expect(printed[0]).not.toContain('"p9"');
    expect(await blocked()).toBe(false);
  });

  it('[HOST-082, HOST-070] blocks whether or not a host accepted it, and not for quiet mail or progress', async () => {
    await posted(desk, { quiet: true });
    await posted(desk, { task_id: 't', status: 'update' });
    expect(await blocked()).toBe(false);
    await posted(desk);
    expect(await blocked()).toBe(true);
    await attach(desk, 's1');
    await desk.clock.advance(31_000);
    await posted(desk);
    expect(desk.rows('SELECT 1 FROM host_accept')).toHaveLength(1);
    expect(await blocked()).toBe(true);
  });

  it('[HOST-084] is guarded by its ledger alone, one for all ids of the session', async () => {
    for (const active of [false, true]) {
      await posted(desk);
      expect([
        await blocked({ active }),
        await blocked({ active }),
        await blocked({ active: !active }),
      ]).toEqual([true, false, false]);
    }
    await desk.store.write((tx) => tx.identity.link('s2', 's1'));
    expect(await blocked({ session: 's2' })).toBe(false);
    expect(readdirSync(directory)).toEqual(['s1.json']);
    expect(await blocked({ ledgers: ledgersIn(path.join(desk.directory, 'emptied')) })).toBe(true);
  });

  it('[HOST-125] says nothing of what was taken in meanwhile', async () => {
    await attach(desk, 's1');
    const { message_id } = await posted(desk);
    await scene.done(message_id);
    expect(await blocked()).toBe(false);
    expect(await midTurn(desk, ringing)).toEqual([]);
    expect(nextBatch(desk, 's1')?.text).toBeUndefined();
  });

  it('[HOST-085] writes its ledger first; where it cannot, only a first Stop is blocked', async () => {
    await posted(desk);
    const refusing = {
      read: () => undefined,
      write: () => {
        throw new Fault('store_unwritable', 'read-only');
      },
    };
    expect(await stop({ ledgers: refusing, active: true })).toMatchObject({
      printed: [],
      outcome: 'error',
      reason: 'ledger: store_unwritable',
    });
    const first = await stop({ ledgers: refusing });
    expect([first.printed.length, first.outcome]).toEqual([1, 'error']);
    let atPrint: string[] = [];
    await stop({
      print: () => {
        atPrint = readdirSync(directory);
        throw new Error('killed');
      },
    });
    expect(atPrint).toEqual(['s1.json']);
  });

  describe('[HOST-086] a block that nobody read', () => {
    const unread = () =>
      stop({
        print: () => {
          throw new Error('EPIPE');
        },
      });

    it('holds up no ring, where it opened the reservation', async () => {
      await posted(desk);
      await unread();
      expect(scene.reservations()).toEqual([]);
      scene.startNotifier();
      await desk.clock.advance(1_000);
      expect(scene.rungAt()).toHaveLength(1);
    });

    it('nor where it joined one, whose end and step stay; what was covered before stays so', async () => {
      scene.startNotifier();
      await posted(desk);
      await desk.clock.advance(40_000);
      expect(scene.rungAt()).toEqual([0, 30]);
      await posted(desk, { payload: 'a second' });
      await desk.clock.advance(10_000);
      const before = scene.reservations();
      await unread();
      expect(scene.reservations()).toEqual(before);
      await desk.clock.advance(11_000);
      expect(scene.rungAt()).toEqual([0, 30, 60]);
    });

    it('leaves alone what the host was told of otherwise', async () => {
      await attach(desk, 's1');
      desk.onNotify = () => ({ delivered: false, reason: 'dispatched' });
      await posted(desk);
      expect(await midTurn(desk, ringing)).toHaveLength(1);
      const before = scene.reservations();
      await desk.clock.advance(5_000);
      await unread();
      expect(scene.reservations()).toEqual(before);
      scene.startNotifier();
      await desk.clock.advance(20_000);
      expect(scene.rungAt()).toEqual([]);
    });
  });

  it('[HOST-086] gives the ids back where nobody read the block', async () => {
    await posted(desk);
    expect(await blocked()).toBe(true);
    await posted(desk);
    const closed = () => {
      throw new Error('EPIPE');
    };
    expect(await stop({ print: closed })).toMatchObject({
      printed: [],
      outcome: 'error',
      reason: 'print: closed',
    });
    expect((await stop()).reason).toBe('blocked for 1');
  });

  it('[HOST-087] keeps the newest 2,000, owner-private, and starts anew from what it cannot understand', async () => {
    const ledgers = ledgersIn(directory);
    for (let nth = 0; nth < 2_001; nth += 1) await posted(desk);
    expect((await stop()).reason).toBe('blocked for 2001');
    const kept = ledgers.read('s1') as GateLedger;
    expect([kept.blocked.length, kept.floor, kept.blocked[0]?.[0], kept.blocked.at(-1)?.[0]]).toEqual([
      2_000, 1, 2, 2_001,
    ]);
    expect(await blocked()).toBe(false);
    const file = path.join(directory, 's1.json');
    expect([statSync(directory).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
    for (const garbage of ['', '{"version":1', '[]', '{"version":1,"floor":0,"blocked":[7]}']) {
      writeFileSync(file, garbage);
      expect(await stop()).toMatchObject({
        printed: [expect.any(String)],
        outcome: 'error',
        reason: 'ledger: corrupt',
      });
      expect(await stop()).toMatchObject({ printed: [], outcome: 'skipped' });
    }
    mkdirSync(path.join(desk.directory, 'x'));
    writeFileSync(path.join(desk.directory, 'x', 'foreign'), readFileSync(file));
    symlinkSync(path.join(desk.directory, 'x', 'foreign'), path.join(directory, 's7.json'));
    expect((await stop({ session: 's7' })).reason).toBe('ledger: corrupt');
    expect(readFileSync(path.join(desk.directory, 'x', 'foreign'), 'utf8')).toBe(readFileSync(file, 'utf8'));
  }, 60_000);

  it('[HOST-087] reads what it wrote, also 2,000 of the longest names', () => {
    const ledgers = ledgersIn(directory);
    const project = '\u{1f426}'.repeat(200);
    const blocked = Array.from({ length: 2_000 }, (_, nth) => [nth, project, 'i'.repeat(36)] as const);
    ledgers.write('s1', { floor: 0, blocked });
    expect(ledgers.read('s1')).toEqual({ floor: 0, blocked });
    writeFileSync(path.join(directory, 's1.json'), 'x'.repeat(4_194_305));
    expect(ledgers.read('s1')).toBe('corrupt');
  });

  it('names files of ids without path meaning', () => {
    const ledgers = ledgersIn(directory);
    for (const id of ['../x', 'a/b', '.', '..', 'ü'.repeat(128)])
      ledgers.write(id, { floor: 0, blocked: [] });
    expect(readdirSync(directory)).toHaveLength(5);
    expect(readdirSync(desk.directory)).not.toContain('x.json');
  });
});

describe('a block is a ring', () => {
  it('[INB-043] opens a reservation, left in preparing, for which nothing is appended; it rings as usual after its end', async () => {
    await posted(desk);
    await stop();
    expect(scene.reservations()).toMatchObject([{ state: 'preparing', step: 0 }]);
    scene.startNotifier();
    await desk.clock.advance(29_900);
    expect(scene.rungAt()).toEqual([]);
    await desk.clock.advance(1_000);
    expect(scene.rungAt()).toEqual([30]);
  });

  it('[INB-043, HOST-122] adds to the current one, whose end is then 30 s after the block, its step kept', async () => {
    await attach(desk, 's1');
    scene.startNotifier();
    await posted(desk);
    await desk.clock.advance(28_000);
    await posted(desk, { payload: 'a second' });
    expect((await stop()).reason).toBe('blocked for 2');
    await desk.clock.advance(29_900);
    expect(scene.rungAt()).toEqual([0]);
    expect(scene.reservations()).toHaveLength(1);
    await desk.clock.advance(1_000);
    expect(scene.rungAt()).toEqual([0, 58]);
    expect(scene.reservations().map(({ step }) => step)).toEqual([0, 1]);
    await posted(desk, { payload: 'a third' });
    await stop();
    expect(scene.reservations().map(({ step }) => step)).toEqual([0, 1]);
  });

  it('[HOST-122] is printed all the same where the store cannot be written', async () => {
    await posted(desk);
    const locked = async () => {
      throw new Fault('store_busy', 'locked');
    };
    expect(await stop({ cover: locked })).toMatchObject({
      printed: [expect.any(String)],
      outcome: 'error',
      reason: 'coverage: store_busy',
    });
  });

  it('[HOST-123] makes a listener pass over rows of which it told everything, within that reservation', async () => {
    await attach(desk, 's1');
    await posted(desk);
    expect(nextBatch(desk, 's1')?.text).toContain('1 message waits');
    await stop();
    expect(nextBatch(desk, 's1')).toEqual({ root: 's1', position: 1 });
    await posted(desk, { recipient: 's1', target_kind: 'session', payload: 'one that it did not tell' });
    expect(nextBatch(desk, 's1')?.text).toContain('2 messages wait');
    await stop();
    expect(nextBatch(desk, 's1')).toEqual({ root: 's1', position: 2 });
    scene.startNotifier();
    await desk.clock.advance(31_000);
    expect(nextBatch(desk, 's1')?.text).toContain('2 messages wait');
  });
});

describe('a listener beside a gate', () => {
  const locks = () => locksIn(path.join(desk.directory, 'runtime'));
  const beginGate = async () => {
    const turn = gateTurn(desk, locks(), 's1');
    await turn.begin();
    return turn.end;
  };

  it('[HOST-123] of an earlier Stop reads nothing while a gate runs, for 3 s at most', async () => {
    const mayRead = afterGates({ desk, locks: locks(), session: 's1', stoppedAtMs: undefined });
    expect(mayRead()).toBe(true);
    expect(readdirSync(desk.directory)).not.toContain('runtime');
    const end = await beginGate();
    expect(mayRead()).toBe(false);
    await desk.clock.advance(2_900);
    expect(mayRead()).toBe(false);
    await desk.clock.advance(100);
    expect(mayRead()).toBe(true);
    end();
    expect(mayRead()).toBe(true);
  });

  it('[HOST-123] of this Stop waits for its own gate, not for one that ended before', async () => {
    (await beginGate())();
    await desk.clock.advance(1_000);
    const began = { desk, locks: locks(), session: 's1', stoppedAtMs: desk.clock.nowMs() };
    const mayRead = afterGates(began);
    expect(mayRead()).toBe(false);
    await desk.clock.advance(40);
    const end = await beginGate();
    expect(mayRead()).toBe(false);
    await desk.clock.advance(10);
    end();
    expect(mayRead()).toBe(true);
    const alone = afterGates({ ...began, session: 's2' });
    expect(alone()).toBe(false);
    await desk.clock.advance(3_000);
    expect(alone()).toBe(true);
  });
});

describe('between two tools of a turn', () => {
  const tell = () => midTurn(desk, ringing);

  it('[HOST-078] one line tells of mail that nothing rang for, once within its reservation; no listener does', async () => {
    await attach(desk, 's1');
    scene.startNotifier();
    desk.onNotify = () => ({ delivered: false, reason: 'dispatched' });
    await posted(desk);
    expect(await tell()).toEqual([
      expect.stringMatching(/^Postbell: 1 message waiting for "bob" in project "shop"/),
    ]);
    expect(await tell()).toEqual([]);
    await desk.clock.advance(29_900);
    expect(scene.rungAt()).toEqual([]);
    await posted(desk, { payload: 'SECRET', task_id: 'u', status: 'update' });
    expect(await tell()).toEqual([]);
    await posted(desk, { payload: 'another' });
    expect(await tell()).toEqual([expect.stringContaining('2 messages and 1 progress')]);
    await desk.clock.advance(29_900);
    expect(scene.rungAt()).toEqual([]);
    await desk.clock.advance(1_000);
    expect(scene.rungAt()).toEqual([59.9]);
  });

  it('[HOST-121] says nothing of what a listener was rung for, nor a listener of what it told; the gate blocks once for it', async () => {
    await attach(desk, 's1');
    await posted(desk);
    expect(scene.rungAt()).toEqual([0]);
    expect(await tell()).toEqual([]);
    expect(await blocked()).toBe(true);
    expect(await blocked()).toBe(false);
    expect(await tell()).toEqual([]);
  });
});
