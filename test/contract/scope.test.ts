// Who an inbox belongs to: one spelling, compared exactly.

import { describe, expect, it } from 'vitest';
import { ack } from '../../src/mailbox/ack.ts';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { activate } from '../../src/mailbox/activate.ts';
import { dispose } from '../../src/mailbox/dispose.ts';
import { fetchMessage } from '../../src/mailbox/fetch.ts';
import { history } from '../../src/mailbox/history.ts';
import { intake } from '../../src/mailbox/intake.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receipts } from '../../src/mailbox/receipts.ts';
import { receive } from '../../src/mailbox/receive.ts';
import {
  ackFields,
  acknowledgeFields,
  activationFields,
  dispositionFields,
  fetchFields,
  historyFields,
  intakeFields,
  pollFields,
  receiptsFields,
  receiveFields,
} from '../../src/protocol/requests.ts';
import { readName } from '../../src/protocol/scope.ts';
import { alice, attach, ok, openScene, post, posted, read, refused, sessionCaller } from './desk.ts';

const decomposed = 'cafe\u0301';
const composed = 'caf\u00e9';

describe('an inbox', () => {
  it('[MSG-009] is the same for a decomposed and a composed name, with spaces around or without, in every action', async () => {
    const desk = await openScene();
    const written = {
      project: ` ${decomposed} `,
      recipient: `\t${decomposed}\n`,
      intended_session: ` ${decomposed}`,
    };
    const sent = await posted(desk, written);
    expect(sent).toMatchObject({ project: composed, recipient: composed, intended_session: composed });
    for (const name of [composed, decomposed, ` ${composed} `]) {
      const scope = { project: name, recipient: name };
      const one = { ...scope, message_id: sent.message_id };
      const caller = { ...alice, session: composed };
      expect(ok(await poll(desk, read(pollFields, scope))).events).toHaveLength(1);
      expect(ok(fetchMessage(desk, read(fetchFields, one))).payload).toBe('hello bob');
      const bare = ok(await ack(desk, read(ackFields, { ...one, idempotency_key: name }), alice));
      const said = { ...one, idempotency_key: name };
      const done = ok(await dispose(desk, read(dispositionFields, { ...said, value: 'deferred' }), caller));
      const woken = ok(await activate(desk, read(activationFields, { ...said, value: 'woken' }), alice));
      expect([bare.actor, done.actor, woken.actor]).toEqual([composed, composed, composed]);
      const past = read(historyFields, { ...scope, peer: 'alice' });
      expect(ok(await history(desk, past, caller)).messages).toHaveLength(1);
      expect(ok(receive(desk, read(receiveFields, scope), caller)).messages).toHaveLength(1);
      expect(ok(receipts(desk, read(receiptsFields, one)))).toMatchObject({
        project: composed,
        recipient: composed,
      });
    }
    const scope = { project: decomposed, recipient: decomposed };
    const messages = [{ sender: 'local', msg_id: sent.message_id }];
    const caller = { ...alice, session: composed };
    const done = ok(await acknowledge(desk, read(acknowledgeFields, { ...scope, messages }), caller));
    expect(done.acknowledged).toBe(1);
    const one = { ...scope, message_id: sent.message_id, state: 'fetched', idempotency_key: 'k' };
    expect(ok(await intake(desk, read(intakeFields, one), caller)).actor).toBe(composed);
  });

  it('[MSG-010] tells upper and lower case apart, and takes separators as they are', async () => {
    const desk = await openScene();
    await posted(desk, { recipient: 'Reviewer' });
    const sent = await posted(desk, { recipient: 'team/reviewer' });
    expect(sent.recipient).toBe('team/reviewer');
    for (const kept of ['\ufb01x', 'a  b', 'x\u00a0y']) {
      expect((await posted(desk, { recipient: kept })).recipient).toBe(kept);
      const twin = kept.normalize('NFKC').replace(/\s+/g, ' ');
      expect(ok(await poll(desk, { project: 'shop', recipient: twin })).events).toEqual([]);
    }
    const of = async (recipient: string) =>
      ok(await poll(desk, { project: 'shop', recipient })).events.map(
        (event) => 'recipient' in event && event.recipient,
      );
    expect(await of('reviewer')).toEqual([]);
    expect(await of('Reviewer')).toEqual(['Reviewer']);
    expect(await of('team/reviewer')).toEqual(['team/reviewer']);
    // Each name that a scope has: a twin in another case is another one.
    await posted(desk, { project: 'Shop', recipient: 'bob' });
    expect(ok(await poll(desk, { project: 'Shop', recipient: 'bob' })).events).toHaveLength(1);
    expect(ok(await poll(desk, { project: 'shop', recipient: 'bob' })).events).toEqual([]);
    const registered = await attach(desk, 'S1', { principal_id: 'Bob' });
    expect(desk.store.read((tx) => tx.sessions.connection(registered.connection_id))).toMatchObject({
      session_id: 'S1',
      principal_id: 'Bob',
    });
    expect(await posted(desk, { recipient: 'bob' })).toMatchObject({ recipient_presence: 'unknown' });
    expect(await posted(desk, { recipient: 'Bob' })).toMatchObject({ recipient_presence: 'live' });
    const meant = await posted(desk, { recipient: 'Bob', intended_session: 'S1' });
    expect(meant.intended_session).toBe('S1');
    const seen = (session: string) =>
      ok(receive(desk, { project: 'shop', limit: 100 }, sessionCaller(session, 'nobody'))).messages;
    expect(seen('S1').map(({ message_id }) => message_id)).toContain(meant.message_id);
    expect(seen('s1')).toEqual([]);
  });

  it('[MSG-010] is what every name of a frame and of a call is read by', () => {
    for (const field of ['project', 'recipient', 'principal_id', 'intended_session', 'actor'])
      expect(readName(field, 'Team/Reviewer X')).toBe('Team/Reviewer X');
  });

  it('[MSG-011] gives a prefix no meaning', async () => {
    const desk = await openScene();
    await posted(desk, { recipient: 'claude-code:reviewer' });
    expect(ok(await poll(desk, { project: 'shop', recipient: 'reviewer' })).events).toEqual([]);
    const named = await poll(desk, { project: 'shop', recipient: 'claude-code:reviewer' });
    expect(ok(named).events).toHaveLength(1);
  });

  it('[MSG-015] keeps a sender as it is spelled, and keys nothing but idempotency by it', async () => {
    const desk = await openScene();
    const first = await posted(desk, { sender: decomposed, idempotency_key: 'same' });
    const second = await posted(desk, { sender: composed, idempotency_key: 'same', payload: 'another' });
    expect(first.sender).toBe(decomposed);
    expect(desk.rows('SELECT sender FROM message ORDER BY seq')).toEqual([
      { sender: decomposed },
      { sender: composed },
    ]);
    expect(second.message_id).not.toBe(first.message_id);
    const spaced = await posted(desk, { sender: ` ${composed}\t`, idempotency_key: 'same' });
    expect([spaced.sender, spaced.message_id === second.message_id]).toEqual([` ${composed}\t`, false]);
    expect(ok(await poll(desk, { project: 'shop', recipient: 'bob' })).events).toHaveLength(3);
    expect(ok(await post(desk, { sender: '\u{1f426}'.repeat(200) })).sender).toHaveLength(400);
    expect(ok(await post(desk, { sender: 'x' })).sender).toBe('x');
    for (const sender of ['', '\u{1f426}'.repeat(201)])
      expect(refused(await post(desk, { sender })).code).toBe('invalid_request');
  });
});
