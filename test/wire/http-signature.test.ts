// Signed requests to a relay: the printed vector, the published one, each thing that is altered, each header that is not read.

import { createHash } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { signerOf, verify } from '../../src/crypto/ed25519.ts';
import {
  contentDigest,
  type RequestHeaders,
  type RequestSignature,
  readRequestSignature,
  type SignedHeaders,
  signatureBase,
  signRequest,
  verifyRequest,
} from '../../src/crypto/http-signature.ts';
import { itemId } from '../../src/crypto/item-id.ts';
import { keyBytes } from '../../src/crypto/key-text.ts';
import { deviceB, keyA, keyB, seedA, seedB, relayRequest as v } from '../vectors/postbell-1.ts';
import { rfc9421 } from '../vectors/published.ts';
import { runs } from './runs.ts';

const nonce = Uint8Array.from({ length: 16 }, (_, at) => at);
const body = new TextEncoder().encode(v.body);
const none = new Uint8Array();
const target = { method: v.method, authority: v.authority, path: v.path, query: v.query };
const signer = signerOf(seedB);
const signed = signRequest({ ...target, body, created: v.created, nonce, signer });

const received = (headers: SignedHeaders): RequestHeaders => ({
  signatureInput: headers['signature-input'],
  signature: headers.signature,
  contentDigest: headers['content-digest'],
});

const read = (headers: RequestHeaders): RequestSignature => {
  const found = readRequestSignature(headers);
  if (typeof found === 'string') throw new Error(`not read: ${found}`);
  return found;
};

const good = received(signed);
const bytesOf = (text: string): Uint8Array => keyBytes(text) as Uint8Array;

describe('a signed request', () => {
  it('has the base that RFC 9421 publishes, and its signature', () => {
    const base = signatureBase(rfc9421.components, rfc9421.parameters);
    expect(base).toBe(rfc9421.base);
    const own = signerOf(bytesOf(rfc9421.seed));
    expect(own.key).toBe(rfc9421.key);
    expect(Buffer.from(own.sign(Buffer.from(base))).toString('base64')).toBe(rfc9421.signature);
    expect(verify(bytesOf(rfc9421.key), Buffer.from(base), Buffer.from(rfc9421.signature, 'base64'))).toBe(
      true,
    );
  });

  it('[REL-025] is the printed vector; each altered component fails', () => {
    expect(createHash('sha256').update(v.base).digest('hex')).toBe(v.baseSha256);
    expect(signed).toEqual({
      'content-digest': 'sha-256=:hDq9ra1GZa/rWw/YPpp3Z9UNResMyH8WNiB2hBsDWeY=:',
      'signature-input': `pb=${v.base.split('"@signature-params": ')[1]}`,
      signature: `pb=:${v.signature}:`,
    });
    // By another library, over the printed text.
    const printed = ed25519.sign(new TextEncoder().encode(v.base), seedB);
    expect(Buffer.from(printed).toString('base64')).toBe(v.signature);

    const request = read(good);
    expect(request).toMatchObject({ keyId: keyB, created: v.created, nonce: v.nonce });
    expect(verifyRequest(request, target, body)).toBeUndefined();

    for (const altered of [
      { method: 'PUT' },
      { method: 'post' },
      { authority: 'other.example' },
      { authority: 'relay.example:443' },
      { path: v.path.replace('/settle', '/items') },
      { path: v.path.replace(deviceB, deviceB.replace('b0', 'b1')) },
      { path: `${v.path}/` },
      { query: '?purge=1' },
      { query: '?x' },
    ])
      expect([altered, verifyRequest(request, { ...target, ...altered }, body)]).toEqual([
        altered,
        'signature',
      ]);

    const parameters: [string, string][] = [
      ['created=1790000000', 'created=1790000001'],
      [v.nonce, 'AQECAwQFBgcICQoLDA0ODw'],
      [keyB, keyA],
    ];
    for (const [from, to] of parameters) {
      const changed = read({ ...good, signatureInput: good.signatureInput?.replace(from, to) });
      expect([to, verifyRequest(changed, target, body)]).toEqual([to, 'signature']);
    }

    // The body, with its signed digest, with a digest of its own, and with none.
    const other = new TextEncoder().encode('{"ack":["t2"],"defer":[]}');
    expect(verifyRequest(request, target, other)).toBe('digest');
    expect(verifyRequest(request, target, none)).toBe('digest');
    const itsOwn = read({ ...good, contentDigest: contentDigest(other) });
    expect(verifyRequest(itsOwn, target, other)).toBe('signature');
    const withoutDigest = good.signatureInput?.replace(' "content-digest"', '');
    const undigested = read({ ...good, signatureInput: withoutDigest });
    expect(verifyRequest(undigested, target, body)).toBe('signature');
    expect(verifyRequest(undigested, target, none)).toBe('signature');

    // In another order of its parameters it is another base.
    const moved = good.signatureInput?.replace(
      ';alg="ed25519";tag="postbell-relay-1"',
      ';tag="postbell-relay-1";alg="ed25519"',
    );
    expect(verifyRequest(read({ ...good, signatureInput: moved }), target, body)).toBe('signature');
    const signature = new Uint8Array(request.signature);
    signature[0] = (signature[0] as number) ^ 1;
    expect(verifyRequest({ ...request, signature }, target, body)).toBe('signature');
  });

  it('without a body has no digest, and none is asked for', () => {
    for (const empty of [undefined, none]) {
      const headers = signRequest({
        ...target,
        method: 'GET',
        query: '?wait_ms=25000&max=16',
        ...(empty && { body: empty }),
        created: v.created,
        nonce,
        signer,
      });
      expect(headers['content-digest']).toBeUndefined();
      expect(headers['signature-input']).not.toContain('content-digest');
      const got = { ...target, method: 'GET', query: '?wait_ms=25000&max=16' };
      const request = read(received(headers));
      expect(verifyRequest(request, got, none)).toBeUndefined();
      // A digest that is not signed changes nothing; a body that is not signed does.
      expect(read({ ...received(headers), contentDigest: contentDigest(body) }).digest).toBeUndefined();
      expect(verifyRequest(request, got, body)).toBe('signature');
    }
  });

  it('takes its parameters in any order, as they were signed', () => {
    const parameters = `("@method" "@authority" "@path" "@query");tag="postbell-relay-1";alg="ed25519";keyid="${keyA}";nonce="${v.nonce}";created=5`;
    const base = signatureBase(
      [
        ['@method', 'GET'],
        ['@authority', 'relay.example'],
        ['@path', '/v1/x'],
        ['@query', '?'],
      ],
      parameters,
    );
    const signature = Buffer.from(signerOf(seedA).sign(Buffer.from(base))).toString('base64');
    const request = read({
      signatureInput: `pb=${parameters}`,
      signature: `pb=:${signature}:`,
      contentDigest: undefined,
    });
    expect(request).toMatchObject({ keyId: keyA, created: 5, nonce: v.nonce, digest: undefined });
    const got = { method: 'GET', authority: 'relay.example', path: '/v1/x', query: '' };
    expect(verifyRequest(request, got, none)).toBeUndefined();
  });

  it('by a key of small order is none', () => {
    const weak = `AQ${'A'.repeat(41)}`;
    const request = read({ ...good, signatureInput: good.signatureInput?.replace(keyB, weak) });
    const forged = new Uint8Array(64);
    forged[0] = 1;
    expect(verifyRequest({ ...request, signature: forged }, target, body)).toBe('signature');
  });

  it('is not made, nor held for one, with a line end in a component', () => {
    const path = '/v1/x\n"@query": ?y';
    expect(() => signRequest({ ...target, path, created: 1, nonce, signer })).toThrow('visible ASCII');
    expect(() => signRequest({ ...target, query: 'x=1', created: 1, nonce, signer })).toThrow(
      'visible ASCII',
    );
    expect(() => signRequest({ ...target, created: 1.5, nonce, signer })).toThrow('whole second');
    expect(() => signRequest({ ...target, created: 1, nonce: nonce.subarray(1), signer })).toThrow(
      '16 bytes',
    );
    for (const odd of [{ path }, { authority: '' }, { method: 'GET\r' }, { query: '?\u00e9' }])
      expect(verifyRequest(read(good), { ...target, ...odd }, body)).toBe('signature');
  });
});

const input = good.signatureInput as string;
const of = (from: string | RegExp, to: string): RequestHeaders => ({
  ...good,
  signatureInput: input.replace(from, to),
});
const longNonce = 'AAECAwQFBgcICQoLDA0ODxA';

describe('headers', () => {
  it.each<[string, RequestHeaders, string]>([
    ['no signature', { ...good, signature: undefined }, 'missing'],
    ['no input', { ...good, signatureInput: undefined }, 'missing'],
    ['another label', of('pb=', 'sig1='), 'components'],
    ['a second label', { ...good, signatureInput: `${input}, sig1=()` }, 'parameters'],
    ['a label before', { ...good, signatureInput: `sig1=(), ${input}` }, 'components'],
    ['a missing component', of('"@path" ', ''), 'components'],
    ['a component more', of('"@query"', '"@query" "host"'), 'components'],
    ['another order of the components', of('"@method" "@authority"', '"@authority" "@method"'), 'components'],
    ['the digest twice', of('"content-digest"', '"content-digest" "content-digest"'), 'components'],
    ['a component with a parameter', of('"@path"', '"@path";req'), 'components'],
    ['two blanks between components', of('"@method" ', '"@method"  '), 'components'],
    ['no parameters', of(/;.*/, ''), 'parameters'],
    ['no created', of(';created=1790000000', ''), 'parameters'],
    ['created twice', of(';created=1790000000', ';created=1790000000;created=1790000000'), 'parameters'],
    ['created as text', of('created=1790000000', 'created="1790000000"'), 'parameters'],
    ['created with a zero before', of('created=1790000000', 'created=01790000000'), 'parameters'],
    ['created below zero', of('created=1790000000', 'created=-1'), 'parameters'],
    ['created as a decimal', of('created=1790000000', 'created=1790000000.0'), 'parameters'],
    ['created beyond the form', of('created=1790000000', 'created=1790000000000000'), 'parameters'],
    ['an expiry', of(';alg', ';expires=1790000060;alg'), 'parameters'],
    ['an unknown parameter', of(';alg', ';toString="x";alg'), 'parameters'],
    ['a blank before a parameter', of(';alg', '; alg'), 'parameters'],
    ['another algorithm', of('"ed25519"', '"hmac-sha256"'), 'parameters'],
    ['another tag', of('postbell-relay-1', 'postbell-relay-2'), 'parameters'],
    ['a short nonce', of(v.nonce, v.nonce.slice(1)), 'parameters'],
    ['a long nonce', of(v.nonce, longNonce), 'parameters'],
    ['a nonce of another writing', of(v.nonce, `${v.nonce.slice(0, -1)}x`), 'parameters'],
    ['a key that is too short', of(keyB, keyB.slice(1)), 'key'],
    ['a key of another writing', of(keyB, `${keyB.slice(0, -1)}J`), 'key'],
    ['something behind the parameters', { ...good, signatureInput: `${input};` }, 'parameters'],
    ['a long input', { ...good, signatureInput: `${input}${';x=1'.repeat(300)}` }, 'components'],
    [
      'a signature under another label',
      { ...good, signature: good.signature?.replace('pb=', 'sig1=') },
      'signature',
    ],
    ['a signature without colons', { ...good, signature: `pb=${v.signature}` }, 'signature'],
    [
      'a signature in base64url',
      { ...good, signature: `pb=:${v.signature.replaceAll('/', '_')}:` },
      'signature',
    ],
    ['a signature without padding', { ...good, signature: `pb=:${v.signature.slice(0, -2)}:` }, 'signature'],
    [
      'a signature of another writing',
      { ...good, signature: `pb=:${v.signature.replace('2DQ==', '2DR==')}:` },
      'signature',
    ],
    [
      'a signature of 63 bytes',
      { ...good, signature: `pb=:${Buffer.alloc(63).toString('base64')}:` },
      'signature',
    ],
    ['two signatures', { ...good, signature: `${good.signature}, sig1=:AAAA:` }, 'signature'],
    ['a long signature', { ...good, signature: `pb=:${'A'.repeat(100_000)}:` }, 'signature'],
    ['no digest', { ...good, contentDigest: undefined }, 'digest'],
    [
      'a digest of another hash',
      { ...good, contentDigest: good.contentDigest?.replace('sha-256', 'sha-512') },
      'digest',
    ],
    ['two digests', { ...good, contentDigest: `${good.contentDigest}, sha-512=:AAAA:` }, 'digest'],
    ['a digest that is too short', { ...good, contentDigest: 'sha-256=:AAAA:' }, 'digest'],
  ])('with %s are not read', (_, headers, reason) => {
    expect(readRequestSignature(headers)).toBe(reason);
  });

  it('are never thrown at', () => {
    const text = fc.option(
      fc.oneof(fc.string(), fc.constantFrom(input, good.signature, good.contentDigest)),
      {
        nil: undefined,
      },
    );
    fc.assert(
      fc.property(text, text, text, (signatureInput, signature, contentDigestText) => {
        const found = readRequestSignature({
          signatureInput,
          signature,
          contentDigest: contentDigestText,
        } as RequestHeaders);
        if (typeof found !== 'string') verifyRequest(found, target, body);
      }),
      { numRuns: runs(500) },
    );
  });

  it('with one character changed are not read, or do not verify', () => {
    const places = fc.record({
      header: fc.constantFrom('signatureInput', 'signature', 'contentDigest'),
      at: fc.nat(400),
      to: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    });
    fc.assert(
      fc.property(places, ({ header, at, to }) => {
        const value = good[header as keyof RequestHeaders] as string;
        const place = at % value.length;
        fc.pre(value[place] !== to);
        const changed = { ...good, [header]: value.slice(0, place) + to + value.slice(place + 1) };
        const found = readRequestSignature(changed);
        if (typeof found !== 'string') expect(verifyRequest(found, target, body)).toBe('signature');
      }),
      { numRuns: runs(500) },
    );
  });
});

describe('an item id', () => {
  const secret = new Uint8Array(16).fill(5);
  const queue = `${keyB}.${deviceB}`;
  const periodMs = 43_200_000;
  const start = 41_435 * periodMs;

  it('is stable within 12 hours and another after, for another queue and for another secret', () => {
    const id = itemId({ secret, queue, signedAtMs: start });
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(itemId({ secret, queue, signedAtMs: start + periodMs - 1 })).toBe(id);
    const others = [
      itemId({ secret, queue, signedAtMs: start + periodMs }),
      itemId({ secret, queue, signedAtMs: start - 1 }),
      itemId({ secret, queue: `${keyA}.${deviceB}`, signedAtMs: start }),
      itemId({ secret: new Uint8Array(16).fill(6), queue, signedAtMs: start }),
    ];
    expect(new Set([id, ...others]).size).toBe(5);
  });

  it('is the first half of a hash of secret, queue and period', () => {
    const period = Buffer.from('000000000000a1db', 'hex');
    const digest = createHash('sha256')
      .update(Buffer.concat([secret, Buffer.from(queue), period]))
      .digest('hex');
    expect(itemId({ secret, queue, signedAtMs: start + 1 })).toBe(digest.slice(0, 32));
  });
});
