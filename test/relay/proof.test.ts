// Who may ask what of a relay.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { noncesBy } from '../../src/relay/nonces.ts';
import { FakeClock } from '../contract/clock.ts';
import { type Asked, alice, bob, queueAt, type Scene, startScene } from './scene.ts';

let scene: Scene;
/** What the relay takes its own time for, beside the real one. */
let offMs = 0;
const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offMs };

beforeEach(async () => {
  offMs = 0;
  scene = await startScene({ clock });
  expect((await scene.register(alice)).status).toBe(200);
});
afterEach(() => scene.close());

const settlePath = `/v1/queues/${queueAt(alice)}/settle`;
const settling = (more: Partial<Asked> = {}): Asked => ({
  method: 'POST',
  path: settlePath,
  body: '{"ack":[]}',
  headers: { 'content-type': 'application/json' },
  by: alice,
  ...more,
});
const coded = async (asked: Asked): Promise<string> => {
  const { status, code } = await scene.ask(asked);
  return `${status} ${code}`;
};

describe('a signed request', () => {
  it('is taken as it was signed, and not with any part altered', async () => {
    expect((await scene.ask(settling())).status).toBe(200);
    const altered: Partial<Asked>[] = [
      { signed: { method: 'PUT' } },
      { signed: { path: `/v1/queues/${queueAt(alice, 2)}/settle` } },
      { signed: { query: '?x=1' } },
      { query: '?x=1', signed: { query: '' } },
    ];
    for (const more of altered) expect(await coded(settling(more))).toBe('401 bad_signature');
    const { by: _, ...unsigned } = settling();
    expect(await coded(unsigned)).toBe('401 bad_signature');
  });

  it('is taken for this relay alone [REL-028]', async () => {
    for (const authority of ['other.example', `localhost:${scene.port}`, '127.0.0.1'])
      expect(await coded(settling({ signed: { authority } }))).toBe('401 bad_signature');
    const named = await startScene({ authority: 'relay.example' });
    try {
      const path = `/v1/queues/${queueAt(alice)}`;
      const put = { method: 'PUT', path, by: alice };
      const foreign = await named.ask({ ...put, headers: { host: `127.0.0.1:${named.port}` } });
      expect([foreign.status, foreign.code]).toEqual([401, 'bad_signature']);
      // Whatever host the request names: behind a proxy that may be another one.
      const own = await named.ask({ ...put, signed: { authority: 'relay.example' } });
      expect(own.status).toBe(200);
    } finally {
      await named.close();
    }
  });

  it('is of the key of its queue, and of a sound one [REL-026]', async () => {
    expect(await coded(settling({ by: bob }))).toBe('403 forbidden');
    // Of small order: its one signature holds for everything, to a careless reader.
    const weak = `${'A'.repeat(43)}`;
    const one = `AQ${'A'.repeat(41)}`;
    const everything = Buffer.concat([Buffer.from(one, 'base64url'), Buffer.alloc(32)]);
    for (const key of [weak, one]) {
      const by = { key, sign: () => new Uint8Array(everything) };
      const path = `/v1/queues/${key}.${'0'.repeat(32)}`;
      expect(await coded({ method: 'PUT', path, by })).toBe('401 bad_signature');
    }
  });

  it('is taken once [REL-029]', async () => {
    const nonce = new Uint8Array(16).fill(7);
    const created = Math.floor(clock.nowMs() / 1_000);
    expect((await scene.ask(settling({ nonce, created }))).status).toBe(200);
    expect(await coded(settling({ nonce, created }))).toBe('401 bad_signature');
    const fake = new FakeClock();
    const nonces = noncesBy(fake, 2);
    expect(['a', 'a', 'b', 'c', 'a'].map((one) => nonces.take(one))).toEqual([
      'new',
      'seen',
      'new',
      'full',
      'seen',
    ]);
    await fake.advance(119_999);
    expect(nonces.take('a')).toBe('seen');
    await fake.advance(1);
    expect(nonces.take('a')).toBe('new');
    expect(nonces.take('c')).toBe('new');
  });

  it('is of about the time of the relay, which says its own', async () => {
    const created = Math.floor(clock.nowMs() / 1_000);
    expect((await scene.ask(settling({ created: created - 58 }))).status).toBe(200);
    expect((await scene.ask(settling({ created: created + 58 }))).status).toBe(200);
    for (const off of [-62, 62]) {
      const { status, json, code } = await scene.ask(settling({ created: created + off }));
      expect([status, code]).toEqual([401, 'clock']);
      const { now } = json.error as { now: number };
      expect(Math.abs(now - clock.nowMs())).toBeLessThan(5_000);
    }
    offMs = 7_200_000;
    expect(await coded(settling({ created }))).toBe('401 clock');
  });

  it('does nothing with a body that was altered on its way [REL-030]', async () => {
    await scene.post(queueAt(alice), 1);
    const [item] = await scene.items(alice);
    const body = JSON.stringify({ ack: [item?.token] });
    const signed = { body: new Uint8Array(Buffer.from('{"ack":[]}')) };
    expect(await coded(settling({ body, signed }))).toBe('400 bad_request');
    const register = {
      method: 'PUT',
      path: `/v1/queues/${queueAt(bob)}`,
      headers: { 'content-type': 'application/json' },
      by: bob,
    };
    const other = new Uint8Array(Buffer.from('{"door":false}'));
    expect(await coded({ ...register, body: '{"door":true}', signed: { body: other } })).toBe(
      '400 bad_request',
    );
    expect(await scene.store.presence(queueAt(bob))).toBeUndefined();
    expect(await scene.store.settle(queueAt(alice), { ack: [], defer: [] })).toEqual({
      settled: 0,
      unknown: 0,
    });
    expect((await scene.post(queueAt(alice), 1)).json).toEqual({ accepted: true, duplicate: true });
  });
});

it('refusals tell nothing of a queue that the asker has no key of [REL-033]', async () => {
  await scene.post(queueAt(alice), 1);
  await scene.items(alice);
  await scene.register(alice, 2);
  const asks = (nth: number): Asked[] => {
    const path = `/v1/queues/${queueAt(alice, nth)}`;
    return [
      { method: 'PUT', path, by: bob },
      { method: 'DELETE', path, by: bob },
      { method: 'GET', path: `${path}/items`, by: bob },
      { method: 'GET', path: `${path}/items` },
      settling({ path: `${path}/settle`, by: bob }),
      { method: 'PUT', path: `${path}/card`, by: bob },
      { method: 'PUT', path: `${path}/card` },
    ];
  };
  const answers = async (nth: number) => {
    const found = [];
    for (const asked of asks(nth)) {
      const { status, text, headers } = await scene.ask(asked);
      const { date: _, ...told } = headers;
      found.push({ status, text, told });
    }
    return found;
  };
  // With an item that is leased; registered and empty; not there.
  const [full, empty, none] = [await answers(1), await answers(2), await answers(3)];
  expect(full.map(({ status }) => status)).toEqual([403, 403, 403, 401, 403, 403, 401]);
  expect(empty).toEqual(full);
  expect(none).toEqual(full);
});

it('queues cannot be listed, and a card is read by whoever knows the whole name [REL-035]', async () => {
  for (const path of ['/v1/queues', '/v1/directory', '/v1', '/', '/v1/cards', '/v1/queues.json'])
    expect((await scene.ask({ method: 'GET', path })).status).toBe(404);
  const near = [queueAt(alice, 2), queueAt(bob), `${alice.key}.${'f'.repeat(32)}`];
  const answers = [];
  for (const queue of near) {
    const { status, text } = await scene.ask({ method: 'GET', path: `/v1/queues/${queue}/card` });
    answers.push(`${status} ${text}`);
  }
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain('404');
  const found = await scene.ask({ method: 'GET', path: `/v1/queues/${queueAt(alice)}/card` });
  expect(found.status).toBe(200);
});

it('the signature of the specification is taken, and with nothing of it altered [REL-025]', async () => {
  const owner = signerOf(new Uint8Array(32).fill(0x42));
  const queue = `${owner.key}.b0b1b2b3b4b5b6b7b8b9babbbcbdbebf`;
  const path = `/v1/queues/${queue}/settle`;
  const signedAt: Clock = { ...systemClock, nowMs: () => 1_790_000_000_000 };
  const relay = await startScene({ clock: signedAt, authority: 'relay.example' });
  const components = '("@method" "@authority" "@path" "@query" "content-digest")';
  const parameters = `created=1790000000;nonce="AAECAwQFBgcICQoLDA0ODw";keyid="${owner.key}";alg="ed25519";tag="postbell-relay-1"`;
  const vector = {
    'content-type': 'application/json',
    'content-digest': 'sha-256=:hDq9ra1GZa/rWw/YPpp3Z9UNResMyH8WNiB2hBsDWeY=:',
    'signature-input': `pb=${components};${parameters}`,
    signature:
      'pb=:BlEmQkpZMSt5jE6Fmanz6PD/isudE8eWrZPwjtgzCn/sc32ce8a4XEOS/CXKx3yWL2DxWIKTd4vBQio5jW82DQ==:',
  };
  const body = '{"ack":["t1"],"defer":[]}';
  const ask = async (more: Partial<Asked>, altered: Record<string, string> = {}): Promise<string> => {
    const headers = { ...vector, ...altered };
    const { status, json } = await relay.ask({ method: 'POST', path, body, ...more, headers });
    return `${status} ${(json.error as { message: string }).message}`;
  };
  const input = (from: string, to: string) => ({
    'signature-input': vector['signature-input'].replace(from, to),
  });
  const stranger = `${owner.key.slice(0, -1)}A`;
  try {
    const refused = [
      await ask({ query: '?x' }),
      await ask({ path: path.replace('.b0', '.b1') }),
      await ask({ method: 'PUT', path: path.replace('/settle', '') }),
      await ask({}, { 'content-digest': vector['content-digest'].replace('hDq', 'hDr') }),
      await ask({}, input('created=1790000000', 'created=1790000001')),
      await ask({}, input('AAECAwQ', 'AAECAwR')),
      await ask({}, input('alg="ed25519"', 'alg="ed448"')),
      await ask({}, input('relay-1', 'relay-2')),
      await ask({}, input(' "@query"', '')),
      await ask({}, input(' "content-digest"', '')),
      await ask({}, input('pb=', 'sig1=')),
      await ask({}, { signature: vector.signature.replace('BlE', 'BlF') }),
    ];
    for (const one of refused) expect(one).toMatch(/^401 the signature /);
    expect(await ask({}, input(owner.key, stranger))).toMatch(/^40[13] /);
    // What is signed holds: now it is read, and t1 is no token of a relay.
    expect(await ask({})).toBe('400 ack is a list of tokens');
  } finally {
    await relay.close();
  }
  const elsewhere = await startScene({ clock: signedAt, authority: 'relay2.example' });
  try {
    const { status } = await elsewhere.ask({ method: 'POST', path, body, headers: vector });
    expect(status).toBe(401);
  } finally {
    await elsewhere.close();
  }
});
