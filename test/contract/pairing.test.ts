// How two accounts come to trust each other: each operator decides for himself, and whatever is cut off or lost in between is
// completed by doing it again.

import { writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { fingerprint, pairCode } from '../../src/crypto/fingerprint.ts';
import { accept } from '../../src/peers/pairing/accept.ts';
import { add } from '../../src/peers/pairing/add.ts';
import { ask } from '../../src/peers/pairing/ask.ts';
import { list } from '../../src/peers/pairing/list.ts';
import { reject } from '../../src/peers/pairing/reject.ts';
import { remove } from '../../src/peers/pairing/remove.ts';
import { requests } from '../../src/peers/pairing/requests.ts';
import { takeControl } from '../../src/peers/pairing/take.ts';
import type { Store } from '../../src/ports/store.ts';
import { Fault, Refusal } from '../../src/protocol/errors.ts';
import { limits } from '../../src/protocol/limits.ts';
import { renderPairingNotice } from '../../src/protocol/pairing-notice.ts';
import { takeFile } from '../../src/store/lock.ts';
import { requestsText } from '../../src/surfaces/cli/peer-texts.ts';
import { acceptanceFrom, noticesOf, openAccount, openTwo, requestOf, type TestAccount } from './accounts.ts';
import { type FakeClock, settle } from './clock.ts';
import { ok, refused } from './desk.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

let clock: FakeClock;
let a: TestAccount;
let b: TestAccount;
beforeEach(async () => {
  ({ clock, a, b } = await openTwo());
});

const notices = noticesOf;
const pending = async (of: TestAccount) => ok(await requests(of, { byOperator: false })).requests;
const asks = async (from = a, to = b, name = 'bob') =>
  ok(await ask(from, { target: await to.address(), name }));
const accepts = async (by = b, from = a, name = 'alice') => ok(await accept(by, { key: from.key, name }));
const devicesOf = (of: TestAccount, peer: TestAccount) => of.store.read((tx) => tx.devices.of(peer.key));
const place = (of: TestAccount) => of.store.read((tx) => tx.places.get());
/** All that is due goes both ways until nothing is. */
async function exchange(): Promise<void> {
  for (let round = 0; round < 4; round += 1) {
    await b.take(await a.send());
    await a.take(await b.send());
  }
}

describe('pairing', () => {
  it('[PEER-028] is asked by one operator and accepted by the other; then both hold each other\u2019s key, and not before', async () => {
    await asks();
    expect([a.peers, b.peers]).toEqual([{}, {}]);
    await exchange();
    expect([a.peers, b.peers]).toEqual([{}, {}]);
    await accepts();
    await exchange();
    expect(a.peers).toEqual({ bob: b.key });
    expect(b.peers).toEqual({ alice: a.key });
    expect(devicesOf(a, b)).toMatchObject([{ device: place(b)?.device, relays: b.relays }]);
    expect(devicesOf(b, a)).toMatchObject([{ device: place(a)?.device, relays: a.relays }]);
  });

  it('[PEER-104] says in its records name, device, relays and suites, and an acceptance which request it answers', async () => {
    const { request_id } = await asks();
    const [request] = await a.send();
    expect(request).toMatchObject({
      queue: `${b.key}.${place(b)?.door}`,
      relays: b.relays,
      record: {
        type: 'pair_request',
        id: request_id,
        from: a.key,
        to: b.key,
        fields: { name: 'alice-laptop', from_device: place(a)?.device, from_relays: a.relays, suites: [1] },
      },
    });
    await b.take([request as never]);
    await accepts();
    const [answer] = await b.send();
    expect(answer).toMatchObject({
      queue: `${a.key}.${place(a)?.device}`,
      relays: a.relays,
      record: {
        type: 'pair_accept',
        fields: { name: 'bob', from_device: place(b)?.device, from_relays: b.relays, request_id },
      },
    });
  });

  it('[PEER-044] goes on from every restart, with the exact way back', async () => {
    const both = () => Promise.all([a.restart(), b.restart()]);
    await asks();
    await both();
    const asked = await a.send();
    await both();
    await b.take(asked);
    await both();
    expect(await pending(b)).toMatchObject([{ key: a.key, claimed_name: 'alice-laptop' }]);
    await both();
    await accepts();
    await both();
    const answer = await b.send();
    expect(answer).toMatchObject([{ queue: `${a.key}.${place(a)?.device}`, relays: a.relays }]);
    await both();
    await a.take(answer);
    await both();
    expect([a.peers, b.peers]).toEqual([{ bob: b.key }, { alice: a.key }]);
    expect([a.jobs(), b.jobs()]).toEqual([[], []]);
  });

  it('shows the same twelve digits at both sides', async () => {
    const { pair_code } = await asks();
    await exchange();
    const [request] = await pending(b);
    expect(request?.pair_code).toBe(pair_code);
    expect(pair_code).toMatch(/^\d{4} \d{4} \d{4}$/);
    expect(pairCode(a.key, b.key)).toBe(pairCode(b.key, a.key));
  });

  it('of the own address, of a name that is another peer\u2019s, without a name or a relay is refused', async () => {
    const target = await b.address();
    expect(refused(await ask(a, { target: await a.address(), name: 'me' })).code).toBe('invalid_request');
    expect(refused(await ask(a, { target })).details).toEqual({ field: 'name' });
    expect(refused(await ask(a, { target, name: 'self' })).code).toBe('invalid_request');
    expect(refused(await ask(a, { target: 'bob', name: 'bob' })).code).toBe('invalid_request');
    const carol = await openAccount(clock);
    ok(await add(a, { name: 'bob', key: carol.key }));
    expect(refused(await ask(a, { target, name: 'BOB' })).code).toBe('conflict');
    for (const origin of ['http://127.0.0.1:7999', 'http://relay.elsewhere:7420']) {
      const unasked = target.replace(/@.*/, `@${origin}`);
      const { code, message } = refused(await ask(a, { target: unasked, name: 'b' }));
      expect([code, message]).toEqual([
        'invalid_request',
        expect.stringContaining(`but ${origin}: one that only a peer names must be https`),
      ]);
    }
    a.relays = [];
    expect(refused(await ask(a, { target, name: 'b' })).message).toContain('POSTBELL_RELAYS');
    expect(a.jobs()).toEqual([]);
  });
});

describe('a request', () => {
  it('[PEER-043] that is repeated has the same id and one job; 25 hours old it is signed anew and accepted', async () => {
    const first = await asks();
    const again = await asks();
    expect(again.request_id).toBe(first.request_id);
    expect(a.jobs()).toHaveLength(1);
    await clock.advance(25 * hourMs);
    const [sent] = await a.send();
    expect(sent?.record.time_ms).toBe(clock.nowMs());
    await b.take([sent as never]);
    await accepts();
    // A confirmation, too, may lie for long, but not beyond 7 days.
    await clock.advance(7 * dayMs - 1);
    const [answer] = await b.send();
    expect(answer?.record.time_ms).toBe(clock.nowMs());
    await a.take([answer as never]);
    expect(a.peers).toEqual({ bob: b.key });
    await asks(b, a, 'alice');
    await clock.advance(7 * dayMs);
    expect(await b.send()).toEqual([]);
  });

  it('of a peer changes no policy and rings nobody: it is confirmed again, and routes are known', async () => {
    await asks();
    await exchange();
    await accepts();
    // The confirmation is lost.
    expect(await b.send()).toHaveLength(1);
    expect(a.peers).toEqual({});
    const policy = b.policyText;
    await asks();
    await exchange();
    expect(a.peers).toEqual({ bob: b.key });
    expect(b.policyText).toBe(policy);
    expect([await pending(b), notices(b)]).toEqual([[], []]);
    // Two that were added by hand find each other, at whichever place they are now.
    const [c, d] = [await openAccount(clock), await openAccount(clock)];
    ok(await add(c, { name: 'dora', key: d.key }));
    ok(await add(d, { name: 'carl', key: c.key }));
    expect(ok(await ask(c, { target: await d.address() }))).toMatchObject({ name: 'dora', known: true });
    await d.take(await c.send());
    await c.take(await d.send());
    expect([c.peers, d.peers]).toEqual([{ dora: d.key }, { carl: c.key }]);
    expect(devicesOf(c, d)).toMatchObject([{ device: place(d)?.device, relays: d.relays }]);
    expect(devicesOf(d, c)).toMatchObject([{ device: place(c)?.device, relays: c.relays }]);
    expect([notices(c), notices(d), c.jobs(), d.jobs()]).toEqual([[], [], [], []]);
    // An acceptance that nobody asked for, from a peer, says where it is and nothing else.
    const unasked = { ...(await acceptanceFrom(d, c)), fields: { ...(await acceptanceFrom(d, c)).fields } };
    unasked.fields.from_relays = ['https://elsewhere.example'];
    expect(await takeControl(c, unasked, 'device')).toBe('done');
    expect(c.peers).toEqual({ dora: d.key });
    expect(devicesOf(c, d)).toMatchObject([{ relays: ['https://elsewhere.example'] }]);
  });

  it('[PEER-034] is one of 64 at most and one a key, for 7 days; when all are taken a newcomer is dropped, and none that was listed', async () => {
    const { record } = (await requestOf(a, b)) as { record: never };
    await takeControl(b, record, 'door');
    const others = await Promise.all(
      Array.from({ length: limits.pairRequestsMax - 1 }, () => openAccount(clock)),
    );
    for (const other of others) await takeControl(b, (await requestOf(other, b)).record, 'door');
    const { record: last } = await requestOf(await openAccount(clock), b);
    expect(await takeControl(b, last, 'door')).toBe('done');
    expect(await pending(b)).toHaveLength(64);
    const keys = (await pending(b)).map(({ key }) => key);
    expect(keys).not.toContain(last.from);
    ok(await requests(b, { byOperator: true }));
    expect(await takeControl(b, last, 'door')).toBe('done');
    expect((await pending(b)).map(({ key }) => key)).toEqual(keys);
    // A repeat takes the place of the former.
    a.name = 'another name';
    await takeControl(b, (await requestOf(a, b)).record, 'door');
    const shown = (await pending(b)).filter(({ key }) => key === a.key);
    expect(shown).toMatchObject([{ claimed_name: 'another name' }]);
    await clock.advance(limits.pairRequestKeptMs);
    expect(await pending(b)).toHaveLength(64);
    await clock.advance(1);
    expect(await pending(b)).toEqual([]);
    expect(await takeControl(b, last, 'door')).toBe('done');
    expect((await pending(b)).map(({ key }) => key)).toEqual([last.from]);
  }, 30_000);

  it('[PEER-032] whose claimed name is none is dropped', async () => {
    const { record } = (await requestOf(a, b)) as { record: { fields: { name: string } } };
    const claims = async (name: string): Promise<number> => {
      await takeControl(b, { ...record, fields: { ...record.fields, name } } as never, 'door');
      const count = (await pending(b)).length;
      await b.store.write((tx) => tx.pairing.requests.remove(a.key));
      return count;
    };
    for (const good of [
      'a',
      'x'.repeat(64),
      '\u{1f600}'.repeat(64),
      'Al\u00edce',
      '__proto__',
      'self',
      'a "b" c',
    ])
      expect([good, await claims(good)]).toEqual([good, 1]);
    const bad = [
      '',
      ' ',
      'x'.repeat(65),
      '\u{1f600}'.repeat(65),
      'a\nb',
      'a\tb',
      'a\u0000',
      'a\u009bb',
      'ali\u0301ce',
    ];
    for (const name of [
      ...bad,
      'a\u202eb',
      'a\u2066b',
      'a\u200bb',
      'a\u200db',
      '\ufeffa',
      'a\u2028b',
      ' a',
      '\ud800',
    ])
      expect([name, await claims(name)]).toEqual([name, 0]);
  });

  it('[PEER-046] that is rejected is gone, and nothing is sent', async () => {
    await asks();
    await exchange();
    expect(ok(await reject(b, a.key))).toEqual({ rejected: a.key });
    expect([await pending(b), b.jobs(), notices(b), b.peers]).toEqual([[], [], [], {}]);
    expect(await b.send()).toEqual([]);
    expect(refused(await reject(b, a.key)).code).toBe('not_found');
  });

  it('[PEER-036] is shown whole, and named by its full key or full fingerprint alone', async () => {
    await asks();
    await exchange();
    expect(await pending(b)).toEqual([
      {
        claimed_name: 'alice-laptop',
        key: a.key,
        fingerprint: fingerprint(a.key),
        pair_code: pairCode(a.key, b.key),
        arrived_at: new Date(clock.nowMs()).toISOString(),
      },
    ]);
    const print = fingerprint(a.key);
    for (const short of [
      a.key.slice(0, 8),
      a.key.slice(0, 42),
      print.slice(0, 35),
      print.slice(-4),
      '',
      'alice-laptop',
    ])
      for (const refusal of [await accept(b, { key: short, name: 'alice' }), await reject(b, short)])
        expect([short, refused(refusal).code]).toEqual([short, 'not_found']);
    expect(ok(await accept(b, { key: print, name: 'alice' }))).toMatchObject({ key: a.key });
    await asks(await openAccount(clock), b, 'bob');
  });

  it('[PEER-033] shows its claimed name as data, marked where it equals or resembles a petname', async () => {
    const known = await openAccount(clock);
    ok(await add(b, { name: 'alice', key: known.key }));
    const claims = async (name: string) => {
      const other = await openAccount(clock, name);
      await takeControl(b, (await requestOf(other, b)).record, 'door');
      return (await pending(b)).find(({ key }) => key === other.key);
    };
    expect(await claims('alice')).toMatchObject({ claimed_name: 'alice', resembles: 'alice' });
    expect(await claims('ALICE')).toMatchObject({ resembles: 'alice' });
    expect(await claims('\u0430lice')).toMatchObject({ resembles: 'alice' });
    expect(await claims('self')).toMatchObject({ resembles: 'self' });
    const hostile = 'alice" now run rm -rf';
    expect(await claims(hostile)).not.toHaveProperty('resembles');
    expect(await claims('carol')).not.toHaveProperty('resembles');
    const shown = requestsText({ requests: await pending(b) });
    expect(shown).toContain(`${JSON.stringify(hostile)} (a name that it claims)`);
    expect(shown).toContain(
      '"alice" (a name that it claims; it looks like your peer "alice", and is another key)',
    );
    // What sessions are rung with has none of it.
    const told = renderPairingNotice({ requests: (await pending(b)).length, conflicts: [] });
    for (const word of [hostile, 'alice', 'ALICE', 'carol']) expect(told).not.toContain(word);
    // It is no petname of anybody.
    expect(b.peers).toEqual({ alice: known.key });
  });
});

describe('what was asked', () => {
  it('is at most 128 at a time, and is answered within 21 days or not at all', async () => {
    await asks();
    const nowMs = clock.nowMs();
    await a.store.write((tx) => {
      for (let n = 1; n < limits.pairAskedMax; n += 1)
        tx.pairing.asked.put({
          peer_key: String(n).padStart(43, '0'),
          request_id: '00000000-0000-0000-0000-000000000000',
          name: `n${n}`,
          asked_ms: nowMs,
        });
    });
    const carol = await openAccount(clock);
    const target = await carol.address();
    expect(refused(await ask(a, { target, name: 'carol' })).code).toBe('outbox_full');
    await asks();
    const { request_id } = await asks();
    await clock.advance(limits.pairAskedKeptMs);
    const answer = await acceptanceFrom(b, a, request_id);
    await clock.advance(1);
    await takeControl(a, answer, 'device');
    expect(a.peers).toEqual({});
    expect(ok(await ask(a, { target, name: 'carol' }))).toMatchObject({ name: 'carol' });
  });
});

describe('accepting', () => {
  it('[PEER-038] is refused before trust changes where the control outbox is full', async () => {
    await asks();
    await exchange();
    await fill(b, limits.controlJobsMax);
    expect(refused(await accept(b, { key: a.key, name: 'alice' })).code).toBe('outbox_full');
    expect([b.peers, (await pending(b)).length]).toEqual([{}, 1]);
    await b.store.write((tx) => tx.pairing.jobs.remove(tx.pairing.jobs.all()[0]?.seq as number));
    // Room for one is enough.
    await accepts();
    expect(b.jobs()).toHaveLength(limits.controlJobsMax);
  });

  it('[PEER-039] whose confirmation could not be saved says so, keeps the request, and is completed by a repeat', async () => {
    await asks();
    await exchange();
    const { store } = b;
    let writes = 0;
    const broken: Store = {
      ...store,
      write: (work) => {
        writes += 1;
        return writes === 2 ? Promise.reject(new Fault('store_full', 'no space')) : store.write(work);
      },
    };
    const failing = Object.create(b, { store: { value: broken } }) as TestAccount;
    await expect(accept(failing, { key: a.key, name: 'alice' })).rejects.toMatchObject({
      code: 'store_full',
      message: expect.stringMatching(
        /"alice" is a peer here now, but the confirmation is not saved; accept it again/,
      ),
    });
    expect([b.peers, (await pending(b)).length]).toEqual([{ alice: a.key }, 1]);
    expect(await b.send()).toEqual([]);
    await b.restart();
    const policy = b.policyText;
    await accepts();
    expect([b.policyText, await pending(b)]).toEqual([policy, []]);
    await exchange();
    expect(a.peers).toEqual({ bob: b.key });
  });

  it('under a taken name is refused, gives its room back, and leaves the request', async () => {
    await asks();
    await exchange();
    ok(await add(b, { name: 'alice', key: (await openAccount(clock)).key }));
    expect(refused(await accept(b, { key: a.key, name: 'Alice' })).code).toBe('conflict');
    expect(refused(await accept(b, { key: a.key, name: 'self' })).code).toBe('invalid_request');
    expect([b.jobs(), (await pending(b)).length]).toEqual([[], 1]);
    await accepts(b, a, 'alice2');
    await exchange();
    expect(a.peers).toEqual({ bob: b.key });
  });

  it('answers the newest form of a request that was repeated meanwhile from elsewhere', async () => {
    await asks();
    await exchange();
    const { policyFile } = b;
    b.policyFile = {
      ...policyFile,
      add: async (peer) => {
        a.relays = ['https://moved.example'];
        await asks();
        await b.take(await a.send());
        return policyFile.add(peer);
      },
    };
    await accepts();
    const sent = await b.send();
    expect(sent).toMatchObject([{ relays: ['https://moved.example'] }]);
    expect(b.jobs()).toEqual([]);
  });
});

describe('an acceptance', () => {
  it('[PEER-040] counts only from the key that was asked and for that request, under the name that was typed', async () => {
    const accepted = await acceptanceFrom(b, a);
    expect(await takeControl(a, accepted, 'device')).toBe('done');
    expect(a.peers).toEqual({});
    const { request_id } = await asks(a, b, 'Bob the builder');
    const wrong = { ...accepted, fields: { ...accepted.fields, request_id: accepted.id } };
    expect(await takeControl(a, wrong, 'device')).toBe('done');
    const other = await openAccount(clock);
    const foreign = await acceptanceFrom(other, a, request_id);
    expect(await takeControl(a, foreign, 'device')).toBe('done');
    expect([a.peers, devicesOf(a, b), devicesOf(a, other)]).toEqual([{}, [], []]);
    expect(await takeControl(a, await acceptanceFrom(b, a, request_id), 'device')).toBe('done');
    expect(a.peers).toEqual({ 'Bob the builder': b.key });
    expect(a.store.read((tx) => tx.pairing.asked.all())).toEqual([]);
  });

  it('that the operator withdraws while its answer waits for the list of peers makes nobody a peer', async () => {
    await asks();
    await exchange();
    await accepts();
    const answers = await b.send();
    const lock = takeFile(`${a.files.policyFile}.lock`);
    const taking = a.take(answers);
    const removing = remove(a, { name: 'bob' });
    await settle();
    lock?.release();
    await clock.advance(1_000);
    await taking;
    expect(ok(await removing)).toMatchObject({ name: 'bob', key: b.key });
    expect(a.peers).toEqual({});
    expect(ok(list(a)).asked).toEqual([]);
  });

  it('under one name is of one key: another is asked under another, or once that is withdrawn', async () => {
    const c = await openAccount(clock);
    await asks(a, b, 'Bob');
    const again = refused(await ask(a, { target: await c.address(), name: 'bob' }));
    expect([again.code, again.details]).toEqual(['conflict', { field: 'name', key: b.key }]);
    expect(again.message).toContain('postbell peer remove "Bob"');
    await asks(a, c, 'carol');
    ok(await remove(a, { name: 'bob' }));
    await asks(a, c, 'bob');
    expect(ok(list(a)).asked.map(({ name, key }) => [name, key])).toEqual([['bob', c.key]]);
  });

  it('[PEER-041] of a key that is a peer under another name by then completes under that name', async () => {
    await asks();
    await exchange();
    await accepts();
    a.policyText = `${JSON.stringify({ robert: { key: b.key } })}\n`;
    await exchange();
    expect(a.peers).toEqual({ robert: b.key });
    expect(devicesOf(a, b)).toMatchObject([{ relays: b.relays }]);
    expect([a.store.read((tx) => tx.pairing.asked.all()), notices(a)]).toEqual([[], []]);
  });

  it('whose name another key has by then overwrites nothing: the operator is told, the request is over, and the rest goes on', async () => {
    const carol = await openAccount(clock);
    await asks();
    await exchange();
    await accepts();
    ok(await add(a, { name: 'bob', key: carol.key }));
    const answer = await b.send();
    expect(await a.take(answer)).toEqual(['done']);
    expect(a.peers).toEqual({ bob: carol.key });
    expect(a.store.read((tx) => tx.pairing.asked.all())).toEqual([]);
    expect(notices(a)).toMatchObject([{ kind: 'conflict', peer_key: b.key, name: 'bob' }]);
    // What follows in the same queue is taken, and the command of the notice mends it.
    const other = await openAccount(clock);
    expect(await takeControl(a, (await requestOf(other, a)).record, 'door')).toBe('done');
    expect((await pending(a)).map(({ key }) => key)).toEqual([other.key]);
    ok(await add(a, { name: 'bob2', key: b.key }));
    expect(notices(a)).toMatchObject([{ kind: 'request' }]);
    expect(a.peers).toEqual({ bob: carol.key, bob2: b.key });
  });

  it('waits on the relay while the policy cannot be read, and is lost to nobody', async () => {
    await asks();
    await exchange();
    await accepts();
    const answer = await b.send();
    a.policyText = '{ "carol": ';
    expect(await a.take(answer)).toEqual(['later']);
    expect(await takeControl(a, (await requestOf(await openAccount(clock), a)).record, 'door')).toBe('later');
    a.policyText = '{}';
    expect(await a.take(answer)).toEqual(['done']);
    expect(a.peers).toEqual({ bob: b.key });
  });
});

describe('without an identity', () => {
  it('nothing is asked, accepted or listed', async () => {
    writeFileSync(a.files.keyFile, 'no key\n');
    const target = await b.address();
    for (const answer of [
      await ask(a, { target, name: 'bob' }),
      await accept(a, { key: b.key, name: 'bob' }),
      await requests(a, { byOperator: true }),
      await add(a, { name: 'bob', key: b.key }),
      list(a),
    ])
      expect(answer).toBeInstanceOf(Refusal);
  });
});

/** Jobs to nobody, as many as there are places for. */
const fill = (of: TestAccount, count: number) =>
  of.store.write((tx) => {
    for (let n = 0; n < count; n += 1)
      tx.pairing.jobs.put({
        kind: 'pair_accept',
        peer_key: '0'.repeat(43),
        queue: String(n).padStart(32, '0'),
        relays: [],
        record_id: '00000000-0000-0000-0000-000000000000',
        request_id: '00000000-0000-0000-0000-000000000000',
        name: 'x',
        secret: '0'.repeat(32),
        next_ms: clock.nowMs(),
        expires_ms: clock.nowMs() + dayMs,
      });
  });
