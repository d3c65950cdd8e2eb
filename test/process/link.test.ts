// Mail between two machines, in the programs as people run them: two homes, each with a router, and a relay, each at a loopback address
// of its own. Nothing stands in for anything but Codex, whose queue is a program that records what it was told.

import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatAddress, readAddress } from '../../src/protocol/address.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { fakeCodex } from './codex.ts';
import { type Home, until } from './home.ts';
import { runHook } from './hook.ts';
import {
  askToPair,
  configOf,
  factsAt,
  identityOf,
  type Machine,
  openMachine,
  openRelay,
  pairAtTerminals,
  pairByDialogue,
  peersOf,
  type RelayProcess,
  requestAt,
} from './machines.ts';
import { openSession, type Session } from './session.ts';

let relay: RelayProcess & { end(): Promise<void> };
const opened: Home[] = [];
beforeEach(async () => {
  relay = await openRelay();
});
afterEach(async () => {
  for (const home of opened.splice(0).reverse()) await home.end();
  await relay.end();
});

async function machine(name: string, same?: Machine): Promise<Machine> {
  const made = await openMachine(name, relay.origin, same && { same });
  opened.push(made);
  return made;
}

/** Two machines that trust each other, with their routers. */
async function pair(): Promise<[Machine, Machine]> {
  const [alice, bob] = [await machine('alice'), await machine('bob')];
  await Promise.all([alice.startRouter(), bob.startRouter()]);
  await pairByDialogue(alice, bob);
  return [alice, bob];
}

/** Makes the directory a clone of the one remote, as its owner reaches it. */
function cloneAt(at: Machine, url: string): void {
  const git = (...words: string[]) => execFileSync('git', words, { cwd: at.project, env: at.env });
  git('init', '--quiet');
  git('remote', 'add', 'origin', url);
}

interface Mail {
  message_id: string;
  project: string;
  sender: string;
  recipient: string;
  payload: string;
  provenance: Record<string, string>;
  origin: Record<string, unknown>;
  receipt: { sender: string; msg_id: string };
}

/** What waits for a session, once as much does. */
async function mailOf(session: Session, count = 1): Promise<Mail[]> {
  let mail: Mail[] = [];
  await until(`${count} messages wait`, async () => {
    mail = (await session.call('receive_messages', {})).data.messages as Mail[];
    return mail.length >= count;
  });
  return mail;
}

/** A session of that name and id on this machine, once another machine is told of it. */
async function sessionAt(at: Machine, id: string, name: string, seenBy: Machine, as = at.name) {
  const session = await openSession(at, { CLAUDE_CODE_SESSION_ID: id, POSTBELL_RECIPIENT: name });
  await seen(seenBy, as, id);
  return session;
}

/** A card is told within seconds of a change. */
const seen = (by: Machine, peer: string, id: string): Promise<void> =>
  until(
    `${by.name} sees ${id}`,
    async () => (await by.run(['message', 'discover', '--peer', peer])).stdout.includes(id),
    20_000,
  );

const remote = 'https://git.example/x/shop.git';
const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';

describe('two people with a machine each, and a relay on loopback between them', () => {
  it('[PEER-059] pair by a code that both see, and name one project by their clones: name, session, answer and each fact', async () => {
    const [alice, bob] = [await machine('alice'), await machine('bob')];
    cloneAt(alice, remote);
    cloneAt(bob, 'https://bob@git.example/x/shop');
    await Promise.all([alice.startRouter(), bob.startRouter()]);
    const [seen, shown] = await pairAtTerminals(alice, bob);
    expect(seen).toMatch(/^\d{4} \d{4} \d{4}$/);
    expect(shown).toBe(seen);
    expect(await peersOf(alice)).toMatchObject([{ name: 'bob', key: bob.key }]);
    expect(await peersOf(bob)).toMatchObject([{ name: 'alice', key: alice.key }]);

    const reviewer = await sessionAt(bob, 'session-of-bob', 'reviewer', alice);
    const builder = await sessionAt(alice, 'session-of-alice', 'builder', bob);
    // To whoever has the name, in the project of the directory.
    const sent = await alice.ask(['send', 'reviewer', '--peer', 'BOB', '--json'], 'by name');
    expect(sent).toMatchObject({ project: expect.stringMatching(/^shop~[0-9a-f]{32}$/), peer: 'bob' });
    const [byName] = await mailOf(reviewer);
    expect(byName).toMatchObject({
      project: sent.project,
      recipient: 'reviewer',
      payload: 'by name',
      provenance: { transport: 'link', peer_key: alice.key },
      receipt: { sender: alice.key },
    });
    // To the one session.
    const exact = (await builder.call('message', {
      action: 'send',
      sender: 'builder',
      peer: 'bob',
      recipient: 'session-of-bob',
      target_kind: 'session',
      payload: 'to the session',
      idempotency_key: 'k1',
    })) as { data: Record<string, string> };
    const [, toSession] = await mailOf(reviewer, 2);
    expect(toSession).toMatchObject({
      project: sent.project,
      recipient: 'session-of-bob',
      target_kind: 'session',
      payload: 'to the session',
    });
    // The answer, and what its writer made of the question.
    const { message_id } = toSession as Mail;
    await reviewer.call('acknowledge_messages', { messages: [toSession?.receipt] });
    await reviewer.call('message', {
      action: 'disposition',
      recipient: 'session-of-bob',
      message_id,
      value: 'completed',
      idempotency_key: 'd1',
    });
    await reviewer.call('message', {
      action: 'send',
      sender: 'reviewer',
      peer: 'alice',
      recipient: 'builder',
      payload: 'done',
      reply_to: message_id,
      idempotency_key: 'r1',
    });
    const [answer] = await mailOf(builder);
    expect(answer).toMatchObject({
      project: sent.project,
      payload: 'done',
      reply_to: exact.data.message_id,
      origin: { sender_key: bob.key, peer: 'bob' },
    });
    const question = exact.data as { project: string; recipient: string; message_id: string };
    await until('each fact', async () => (await factsAt(alice, question)).kinds.length === 5);
    const { kinds, receipts, state } = await factsAt(alice, question);
    expect(state).toBe('receiver_acknowledged');
    expect(kinds).toEqual([
      `relay_accept ${relay.origin}`,
      'stored live',
      'intake ingested',
      'ack acknowledged',
      'disposition completed',
    ]);
    expect(receipts.map(({ source, peer_key }) => [source, peer_key])).toEqual([
      ['outbox', undefined],
      ...Array(4).fill(['peer', bob.key]),
    ]);
    // Of the other nothing was said but that it is stored there.
    const other = sent as { project: string; recipient: string; message_id: string };
    expect((await factsAt(alice, other)).kinds).toEqual([`relay_accept ${relay.origin}`, 'stored live']);
    await until('the relay holds nothing', () => relay.items() === 0);
  }, 90_000);

  it('need start no router by themselves: a person who sends to a peer, or looks for requests, has one', async () => {
    const [alice, bob] = await pair();
    await alice.endRouter();
    const sent = await alice.run(['send', 'reader', '--peer', 'bob', '--project', 'x'], 'hello');
    expect(sent.stdout).toMatch(/at "bob"; it goes out by itself\. /);
    alice.atEnd(async () => void (await alice.run(['router', 'stop'])));
    const stored = () => bob.rows('SELECT payload FROM message WHERE payload = \'"hello"\'');
    await until('it arrives', () => stored().length === 1, 20_000);
    await bob.endRouter();
    expect((await bob.run(['peer', 'requests'])).stdout).toBe('No request to pair waits.\n');
    bob.atEnd(async () => void (await bob.run(['router', 'stop'])));
    await until('a router runs', async () => (await bob.run(['router', 'status'])).code === 0, 20_000);
    const none = await alice.run(['send', 'reader', '--peer', 'bob', '--project', 'x'], 'again', {
      POSTBELL_RELAYS: '',
    });
    expect(none.stdout).toContain(
      'POSTBELL_RELAYS names no relay here, so that it goes out only by a router',
    );
  }, 60_000);

  it('[INB-160] ring a Codex thread on the other side by the queue of its host, and give no word of the mail away', async () => {
    const [alice, bob] = await pair();
    for (const one of [alice, bob]) cloneAt(one, remote);
    const codex = fakeCodex(bob.dir);
    const plugin = { PLUGIN_ROOT: '/plugin', CLAUDE_PROJECT_DIR: '', PATH: `${codex.bin}:${bob.env.PATH}` };
    const started = {
      session_id: thread,
      cwd: bob.project,
      hook_event_name: 'SessionStart',
      source: 'startup',
      transcript_path: '/t',
    };
    const hook = await runHook(bob, 'codex-session', started, { env: plugin, host: ['--host', 'codex'] });
    expect(hook.code).toBe(0);
    await seen(alice, 'bob', thread);
    const sent = await alice.ask(
      ['send', thread, '--session', '--peer', 'bob', '--json'],
      'a word for Codex',
    );
    const queued = () => codex.starts().filter(({ argv }) => argv?.[0] === 'queue');
    await until('Codex is told', () => queued().length > 0);
    const [told] = queued();
    expect(told?.argv).toContain(thread);
    expect(JSON.stringify(told?.argv)).toContain('[Postbell inbox notice]');
    expect(JSON.stringify(codex.entries())).not.toContain('a word for Codex');
    const scope = sent as { project: string; recipient: string; message_id: string };
    await until('it is stored', async () => (await factsAt(alice, scope)).kinds.includes('stored live'));
    expect(bob.rows('SELECT payload FROM message')).toEqual([{ payload: '"a word for Codex"' }]);
  }, 60_000);

  it('[PEER-014] each says by his own file who may write: what he edits by hand holds for the next message, of every session', async () => {
    const [alice, bob] = [await machine('alice'), await machine('bob')];
    const file = path.join(configOf(bob), 'peers.json');
    expect(existsSync(file)).toBe(false);
    await Promise.all([alice.startRouter(), bob.startRouter()]);
    expect([readFileSync(file, 'utf8'), lstatSync(file).mode & 0o777]).toEqual(['{}\n', 0o600]);
    await pairByDialogue(alice, bob);
    const sessions = [await openSession(bob, { CLAUDE_CODE_SESSION_ID: 's1' }), await openSession(bob, {})];
    const names = (text: string) => writeFileSync(file, text);
    let keys = 0;
    const toPeer = (peer: string) => {
      const input = { action: 'send', project: 'x', sender: 'bob', recipient: 'y', payload: 'z', peer };
      const send = async (session: Session) => {
        const idempotency_key = `k${keys++}`;
        const { isError, data } = await session.call('message', { ...input, idempotency_key });
        return isError ? (data.error as { code: string }).code : data.peer;
      };
      return Promise.all(sessions.map(send));
    };
    const fromAlice = async (text: string) =>
      (await alice.ask(['send', 'y', '--peer', 'bob', '--project', 'x', '--json'], text)).message_id;
    const stored = () =>
      bob.rows<{ payload: string }>('SELECT payload FROM message WHERE peer_key IS NOT NULL ORDER BY seq');
    const refused = () => bob.rows<{ step: string }>('SELECT step FROM gate_refusal');

    expect(await toPeer('alice')).toEqual(['alice', 'alice']);
    names(JSON.stringify({ ally: { key: alice.key } }, null, 1));
    expect(await toPeer('ally')).toEqual(['ally', 'ally']);
    expect(await toPeer('alice')).toEqual(['unknown_peer', 'unknown_peer']);
    names('{}');
    expect(await toPeer('ally')).toEqual(['unknown_peer', 'unknown_peer']);
    await fromAlice('while she is not listed');
    await until('the gate refuses it', () => refused().length > 0);
    expect(stored().map(({ payload }) => payload)).not.toContain('"while she is not listed"');
    names(JSON.stringify({ alice: { key: alice.key } }));
    await fromAlice('listed again');
    await until('it is there', () => stored().some(({ payload }) => payload === '"listed again"'));
    expect(await toPeer('alice')).toEqual(['alice', 'alice']);
  }, 60_000);
});

describe('one person with two machines', () => {
  it('[PEER-010] and one key has queues of each, and no machine gets what is for the other', async () => {
    const [laptop, bob] = await pair();
    const desk = await machine('desk', laptop);
    expect(desk.key).toBe(laptop.key);
    await desk.startRouter();
    // Where the desk is, bob learns from its own request; whom to trust is known already.
    await askToPair(desk, 'bob', (await identityOf(bob)).address);
    for (const one of [laptop, desk, bob]) cloneAt(one, remote);
    await openSession(laptop, { CLAUDE_CODE_SESSION_ID: 'on-the-laptop' });
    await openSession(desk, { CLAUDE_CODE_SESSION_ID: 'on-the-desk' });
    for (const id of ['on-the-laptop', 'on-the-desk']) await seen(bob, 'alice', id);

    const places = await Promise.all([laptop, desk, bob].map((one) => identityOf(one)));
    const queues = places.flatMap(({ key, device, door }) => [`${key}.${device}`, `${key}.${door}`]);
    expect(new Set(queues).size).toBe(6);
    expect(relay.queues()).toEqual(queues.toSorted());
    for (const name of queues) expect(name).toMatch(/^[A-Za-z0-9_-]{43}\.[0-9a-f]{32}$/);

    const sender = await openSession(bob, {});
    const send = (recipient: string, nth: number) =>
      sender.call('message', {
        action: 'send',
        peer: 'alice',
        sender: 'bob',
        recipient,
        target_kind: 'session',
        payload: `${recipient} ${nth}`,
        idempotency_key: `${recipient} ${nth}`,
      });
    const numbers = Array.from({ length: 20 }, (_, nth) => nth);
    for (const nth of numbers)
      for (const id of ['on-the-laptop', 'on-the-desk']) expect((await send(id, nth)).isError).toBe(false);
    const got = (at: Machine) =>
      at.rows<{ payload: string }>('SELECT payload FROM message ORDER BY seq').map(({ payload }) => payload);
    await until('all has come', () => got(laptop).length + got(desk).length >= 40 && relay.items() === 0);
    expect(got(laptop).toSorted()).toEqual(numbers.map((nth) => `"on-the-laptop ${nth}"`).toSorted());
    expect(got(desk).toSorted()).toEqual(numbers.map((nth) => `"on-the-desk ${nth}"`).toSorted());
  }, 90_000);
});

describe('an address', () => {
  it('[PEER-011] is what identity show prints; by a new door the old one leads nowhere, and peers notice nothing', async () => {
    const [alice, bob] = await pair();
    const before = await identityOf(bob);
    const old = before.address;
    const read = readAddress(old);
    if (isRefusal(read)) throw read;
    expect(formatAddress(read)).toBe(old);
    expect(read).toMatchObject({ key: bob.key, door: before.door, relays: [relay.origin] });
    const { stdout } = await bob.run(['identity', 'show']);
    for (const part of [old, bob.key, before.fingerprint]) expect(stdout).toContain(part);

    const after = await identityOf(bob, '--new-door');
    const { door } = after;
    expect(after).toEqual({ ...before, door, address: old.replace(before.door, door) });
    expect(door).not.toBe(before.door);
    const [was, is] = [before.door, door].map((id) => `${bob.key}.${id}`) as [string, string];
    await until('the relay has the new door alone', () => {
      const queues = relay.queues();
      return queues.includes(is) && !queues.includes(was);
    });
    const carol = await machine('carol');
    await carol.startRouter();
    const asked = async () =>
      (await carol.ask(['peer', 'list', '--json'])).asked as { last_error?: string }[];
    await askToPair(carol, 'bob', old);
    await until('the relay knows no such door', async () =>
      /does not know the queue/.test((await asked())[0]?.last_error ?? ''),
    );
    expect(await bob.ask(['peer', 'requests', '--json'])).toEqual({ requests: [] });
    await askToPair(carol, 'bob', after.address);
    expect(await requestAt(bob)).toMatchObject({ key: carol.key, claimed_name: 'carol' });
    // Who is a peer uses no door.
    const sent = await alice.ask(['send', 'y', '--peer', 'bob', '--project', 'x', '--json'], 'hello');
    const scope = sent as { project: string; recipient: string; message_id: string };
    await until('it is stored', async () => (await factsAt(alice, scope)).state === 'receiver_stored');
  }, 60_000);
});
