// Petnames, claimed names and what resembles what; the address that an identity gives away.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatAddress, readAddress } from '../../src/protocol/address.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { checkClaimedName, checkPetname, foldPetname } from '../../src/protocol/names/petname.ts';
import { resembles } from '../../src/protocol/names/resemblance.ts';
import { isCanonicalOrigin } from '../../src/protocol/origin.ts';
import { deviceA as door, keyA, keyB } from '../vectors/postbell-1.ts';
import { runs } from './runs.ts';

const unseen = [
  ['line feed', '\n'],
  ['carriage return', '\r'],
  ['tab', '\t'],
  ['NUL', '\0'],
  ['escape', '\u001b'],
  ['delete', '\u007f'],
  ['next line', '\u0085'],
  ['line separator', '\u2028'],
  ['paragraph separator', '\u2029'],
  ['left-to-right mark', '\u200e'],
  ['right-to-left mark', '\u200f'],
  ['Arabic letter mark', '\u061c'],
  ['right-to-left embedding', '\u202b'],
  ['right-to-left override', '\u202e'],
  ['first strong isolate', '\u2068'],
  ['pop isolate', '\u2069'],
  ['zero-width space', '\u200b'],
  ['zero-width non-joiner', '\u200c'],
  ['zero-width joiner', '\u200d'],
  ['word joiner', '\u2060'],
  ['byte order mark', '\ufeff'],
  ['soft hyphen', '\u00ad'],
  ['grapheme joiner', '\u034f'],
  ['Hangul filler', '\u3164'],
  ['variation selector', '\ufe0f'],
  ['tag letter', '\u{e0061}'],
  ['no-break space', '\u00a0'],
] as const;

describe('petnames', () => {
  it('[PEER-013] are short lines without anything unseen, compared without case', () => {
    for (const name of [
      'alice',
      'Alice Liddell',
      'a',
      'x'.repeat(64),
      '\u{1f600}'.repeat(64),
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      'self-made',
      'J\u00fcrgen',
      'Ju\u0308rgen',
      '\u674e',
      '\u0639\u0644\u064a',
      '*',
      '/root',
    ])
      expect([name, checkPetname(name)]).toEqual([name, undefined]);
    for (const [name, fault] of [
      ['', 'blank'],
      ['  ', 'blank'],
      ['\n', 'blank'],
      ['x'.repeat(65), 'too_long'],
      ['\u{1f600}'.repeat(65), 'too_long'],
      ['x'.repeat(1_000_000), 'too_long'],
      ['a\ud800', 'lone_surrogate'],
      [' alice', 'white_space_around'],
      ['alice ', 'white_space_around'],
      ['self', 'reserved'],
      ['SELF', 'reserved'],
      ['\u017felf', 'reserved'],
    ])
      expect([name, checkPetname(name as string)]).toEqual([name, fault]);
    for (const [name, character] of unseen) {
      expect([name, checkPetname(`a${character}b`)]).toEqual([name, 'unseen_character']);
      expect([name, checkClaimedName(`a${character}b`)]).toEqual([name, 'unseen_character']);
    }
    for (const [one, other] of [
      ['Alice', 'aLICE'],
      ['J\u00fcrgen', 'JU\u0308RGEN'],
      ['stra\u00dfe', 'STRASSE'],
      ['\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2', '\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3'],
      ['\u212bngstr\u00f6m', '\u00e5NGSTR\u00d6M'],
      ['__proto__', '__PROTO__'],
    ] as const)
      expect([one, foldPetname(one)]).toEqual([one, foldPetname(other)]);
    for (const [one, other] of [
      ['alice', 'alicia'],
      ['Jurgen', 'J\u00fcrgen'],
      ['alice', 'al\u0456ce'],
    ] as const)
      expect(foldPetname(one)).not.toBe(foldPetname(other));
    // As the names of a policy.
    const policy = new Map(['__proto__', 'constructor'].map((name) => [foldPetname(name), name]));
    expect([policy.get('__proto__'), policy.get('constructor'), policy.get('toString')]).toEqual([
      '__proto__',
      'constructor',
      undefined,
    ]);
  });

  it('have one form for every spelling of them', () => {
    for (let point = 0; point < 0x3000; point += 1) {
      const letter = String.fromCodePoint(point);
      const forms = [letter, foldPetname(letter), letter.toUpperCase(), letter.toLowerCase()].map(
        foldPetname,
      );
      if (new Set(forms).size > 1) expect([letter, forms]).toEqual([letter, 'one form']);
    }
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        const form = foldPetname(name);
        expect(foldPetname(form)).toBe(form);
        expect(foldPetname(name.toUpperCase())).toBe(form);
        expect(foldPetname(name.normalize('NFD'))).toBe(form);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('claimed names', () => {
  it('are what a petname may be, composed, and may claim to be anybody', () => {
    for (const name of [
      'alice',
      'J\u00fcrgen',
      'self',
      '__proto__',
      'alice" now run',
      '\u{1f600}'.repeat(64),
    ])
      expect([name, checkClaimedName(name)]).toEqual([name, undefined]);
    expect(Buffer.byteLength('\u{1f600}'.repeat(64))).toBe(256);
    for (const [name, fault] of [
      ['Ju\u0308rgen', 'not_nfc'],
      ['\u212bngstrom', 'not_nfc'],
      ['', 'blank'],
      ['a'.repeat(65), 'too_long'],
      ['a\udc00', 'lone_surrogate'],
      ['a ', 'white_space_around'],
    ])
      expect([name, checkClaimedName(name as string)]).toEqual([name, fault]);
  });

  it.each([
    ['alice', 'alice'],
    ['Alice', 'alice'],
    ['AIice', 'Alice'],
    ['a1ice', 'alice'],
    ['al1ce', 'alice'],
    ['al!ce', 'alice'],
    ['@lice', 'alice'],
    ['a-l-i-c-e', 'alice'],
    ['alice.', 'alice'],
    ['"alice"', 'alice'],
    ['ali ce', 'alice'],
    ['\u00e1lice', 'alice'],
    ['a\u0323lice', 'alice'],
    ['\u0430lice', 'alice'],
    ['\u0410\u0406\u0456\u0441\u0435', 'AIice'],
    ['\u03b1lice', 'alice'],
    ['\uff41lice', 'alice'],
    ['\u{1d41a}lice', 'alice'],
    ['b0b', 'bob'],
    ['8ob', 'bob'],
    ['\u0412\u043e\u0412', 'bob'],
    ['J\u00fcrgen', 'Jurgen'],
    ['team-reviewer', 'team reviewer'],
    ['rnary', 'mary'],
    ['vvalt', 'walt'],
    ['\u0455\u0435lf', 'self'],
    ['\u0397elen', 'helen'],
    ['__proto__', 'proto'],
    ['\u{1f600}', '\u{1f600}'],
  ])('%s resembles %s', (claimed, petname) => {
    expect(resembles(claimed, petname)).toBe(true);
    expect(resembles(petname, claimed)).toBe(true);
  });

  it.each([
    ['alicia', 'alice'],
    ['alice2', 'alice'],
    ['bob', 'rob'],
    ['malice', 'alice'],
    ['\u674e', '\u738b'],
    ['\u{1f600}', '\u{1f601}'],
    ['...', '---'],
    ['\u0438\u0432\u0430\u043d', 'ivan'],
  ])('%s does not resemble %s', (claimed, petname) => {
    expect(resembles(claimed, petname)).toBe(false);
    expect(resembles(petname, claimed)).toBe(false);
  });
});

const origins = [
  'https://relay.example',
  'https://relay.example:8443',
  'http://127.0.0.1:7420',
  'http://[::1]:7420',
  'https://xn--bcher-kva.example',
  'http://localhost',
];

describe('addresses', () => {
  it('of one to four relays are read as they are written', () => {
    const listed = fc.uniqueArray(fc.constantFrom(...origins), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(listed, fc.constantFrom(keyA, keyB), (relays, key) => {
        const address = { key, door, relays };
        const text = formatAddress(address);
        expect(text).toBe(`postbell:${key}.${door}@${relays.join(',')}`);
        expect(readAddress(text)).toEqual(address);
      }),
      { numRuns: runs(200) },
    );
  });

  it.each([
    '',
    'postbell:',
    `${keyA}.${door}@${origins[0]}`,
    `Postbell:${keyA}.${door}@${origins[0]}`,
    ` postbell:${keyA}.${door}@${origins[0]}`,
    `postbell:${keyA}.${door}@${origins[0]}\n`,
    `postbell:${keyA}.${door}`,
    `postbell:${keyA}.${door}@`,
    `postbell:${keyA}.${door}@${origins[0]},`,
    `postbell:${keyA}.${door}@,${origins[0]}`,
    `postbell:${keyA}.${door}@${origins[0]},${origins[0]}`,
    `postbell:${keyA}.${door}@${[1, 2, 3, 4, 5].map((n) => `https://r${n}.example`).join(',')}`,
    `postbell:${keyA}.${door.toUpperCase()}@${origins[0]}`,
    `postbell:${keyA}.${door.slice(1)}@${origins[0]}`,
    `postbell:${keyA}.@${origins[0]}`,
    `postbell:${keyA.slice(0, -1)}.${door}@${origins[0]}`,
    `postbell:${keyA.slice(0, -1)}h.${door}@${origins[0]}`,
    `postbell:${keyA}.${door}@https://${'a'.repeat(3_000)}`,
  ])('%j is none', (text) => {
    const read = readAddress(text);
    expect(isRefusal(read) && read.code).toBe('invalid_request');
  });

  it.each([
    'https://relay.example/',
    'https://relay.example/v1',
    'https://relay.example?x',
    'https://relay.example#x',
    'https://user@relay.example',
    'https://user:word@relay.example',
    'https://Relay.example',
    'HTTPS://relay.example',
    'https://relay.example:443',
    'http://relay.example:80',
    'https://relay.example:08443',
    'https://relay.example:65536',
    'https://relay.example:',
    'https://b\u00fccher.example',
    'https://127.1',
    'https://0x7f000001',
    'https://2130706433',
    'https://[::0001]',
    'https://[::1',
    'https://',
    'https:relay.example',
    'https://relay example',
    'https://relay,example',
    'https://relay%2eexample',
    'https://relay.example\n',
    'ftp://relay.example',
    'ws://relay.example',
    'relay.example',
    `https://${'a'.repeat(300)}`,
  ])('%j is no origin as it is listed', (text) => {
    expect(isCanonicalOrigin(text)).toBe(false);
    expect(isRefusal(readAddress(`postbell:${keyA}.${door}@${text}`))).toBe(true);
  });

  it('are never thrown at', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((rest) => `postbell:${keyA}.${door}@${rest}`),
        ),
        (text) => {
          const read = readAddress(text);
          if (!isRefusal(read)) expect(formatAddress(read)).toBe(text);
        },
      ),
      { numRuns: runs(500) },
    );
  });
});
