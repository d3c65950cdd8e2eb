// The owner's files: the key, and whom the account trusts. They are read as they are at each call, and whatever is wrong in them is
// said with the file, the line and what to do.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { signerOf } from '../../src/crypto/ed25519.ts';
import { accountOf, identityFile } from '../../src/platform/account.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createOwnersFile } from '../../src/platform/owners-file.ts';
import { policyFileAt } from '../../src/platform/policy-file.ts';
import { relaysOf } from '../../src/platform/relays.ts';
import { emptyPolicy, readPolicy } from '../../src/protocol/policy-text.ts';
import { takeFile } from '../../src/store/lock.ts';
import { ok, refused, temporaryDirectory } from './desk.ts';

const keyA = 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg';
const keyB = 'IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI';
const keyOf = (n: number): string => signerOf(new Uint8Array(32).fill(n)).key;
/** Verifies anything on the platform: no key of anybody. */
const smallOrder = `AQ${'A'.repeat(41)}`;

let directory: string;
let file: string;
let keyFile: string;
beforeEach(() => {
  directory = temporaryDirectory();
  file = path.join(directory, 'peers.json');
  keyFile = path.join(directory, 'identity.key');
});

const account = () => accountOf({ keyFile, policyFile: file });
const writer = (at = file) => policyFileAt(at, { clock: systemClock, takeLock: takeFile });
const peersIn = (text: string) => {
  writeFileSync(file, text);
  return ok(account().policy()).peers;
};
const faultOf = (text: string) => {
  writeFileSync(file, text);
  const { code, message, details } = refused(account().policy());
  expect([code, details]).toEqual(['store_unreadable', { path: file }]);
  expect(message.startsWith(`${file}: `)).toBe(true);
  expect(message).not.toContain('\n');
  return message.slice(file.length + 2);
};

describe('peers.json', () => {
  it('[PEER-012] is petname to key; unknown members are kept and ignored', () => {
    expect(peersIn('{}')).toEqual([]);
    expect(peersIn(`{"bob":{"key":"${keyB}"}}`)).toEqual([{ name: 'bob', key: keyB, receipts: true }]);
    const more = `{ "bob": { "note": { "deep": [1, "}{" ] }, "key": "${keyB}", "receipts": false, "x": null } }`;
    expect(peersIn(more)).toEqual([{ name: 'bob', key: keyB, receipts: false }]);
    const escaped = `{"__proto__":{"key":"${keyA}"},"\\u0062ob, the \\"second\\"":{"key":"${keyB}"}}`;
    expect(peersIn(escaped).map(({ name }) => name)).toEqual(['__proto__', 'bob, the "second"']);
    const policy = ok(account().policy());
    expect(policy.named('__PROTO__')?.key).toBe(keyA);
    expect([policy.named('constructor'), policy.of('toString'), policy.of(keyB)?.name]).toEqual([
      undefined,
      undefined,
      'bob, the "second"',
    ]);
    // Anything invalid rejects all of it.
    const good = `"alice": { "key": "${keyA}" }`;
    expect(faultOf(`{\n  ${good},\n  "bob": { "key": "${keyB.slice(1)}" }\n}\n`)).toBe(
      'line 3: the key of "bob" is no public key; put the 43 characters that its owner gave',
    );
    for (const key of [
      smallOrder,
      `${keyB}=`,
      ` ${keyB}`,
      keyB.replace('I', '+'),
      `${keyB.slice(0, 42)}J`,
      '',
    ])
      expect(faultOf(`{ ${good}, "bob": { "key": ${JSON.stringify(key)} } }`)).toMatch(
        /^line 1: the key of "bob"/,
      );
    for (const key of ['1', 'null', '{}', `["${keyB}"]`])
      expect(faultOf(`{ ${good}, "bob": { "key": ${key} } }`)).toMatch(/^line 1: the key of "bob"/);
    expect(faultOf(`{ ${good}, "bob": {} }`)).toMatch(/the key of "bob"/);
    expect(faultOf(`{\n${good},\n\n"bob": "${keyB}" }`)).toMatch(/^line 4: "bob" must have an object/);
    expect(faultOf(`{\n${good},\n"bob": { "key": "${keyA}" }\n}`)).toBe(
      'line 3: "bob" and "alice" have the same key; remove one',
    );
    // Also where one name stands twice, which JSON readers pass over.
    expect(faultOf(`{\n${good},\n"Alice":\n{ "key": "${keyB}" }}`)).toMatch(
      /^line 3: "Alice" and "alice" are one name/,
    );
    expect(faultOf(`{${good},${good.replace(keyA, keyB)}}`)).toMatch(/are one name/);
    expect(faultOf(`{ ${good}, "bob": { "key": "${keyB}", "receipts": "no" } }`)).toMatch(
      /"receipts" of "bob"/,
    );
  });

  it('names the line where it is no JSON, or not an object', () => {
    expect(faultOf('')).toMatch(/no JSON/);
    expect(faultOf(`{\n  "bob": {\n    "key": "${keyB}",\n  }\n}\n`)).toMatch(
      /^line 4: the text is no JSON here/,
    );
    expect(faultOf(`{ "bob": { "key": "${keyB}" }`)).toMatch(/no JSON/);
    for (const other of ['[]', '"x"', '1', 'null', 'true']) expect(faultOf(other)).toMatch(/one object/);
    writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]));
    expect(refused(account().policy()).message).toMatch(/not UTF-8/);
  });

  it('refuses names that hide or pretend, and takes the others', () => {
    const named = (name: string) => readPolicy(JSON.stringify({ [name]: { key: keyB } }), () => true);
    const good = [
      'a',
      'x'.repeat(64),
      'Bob the builder',
      'z\u00fcrich',
      'zu\u0308rich',
      '\u{1f600}',
      '42',
      'toString',
    ];
    for (const name of good)
      expect([name, ok(named(name)).named(name.toUpperCase())?.key]).toEqual([name, keyB]);
    const bad = [
      '',
      ' ',
      'x'.repeat(65),
      'self',
      'SELF',
      'a\nb',
      'a\u0007',
      'a\u202eb',
      'a\u200bb',
      ' a',
      'a ',
    ];
    for (const name of bad) expect([name, refused(named(name)).code]).toEqual([name, 'store_unreadable']);
    expect(refused(named('a\u202eb')).message).toBe(
      'line 1: the name "a\\u202eb" holds a character that is not seen; rename it',
    );
  });

  it('is read anew at each call; where none is, nobody is trusted', async () => {
    const own = account();
    expect(ok(own.policy()).peers).toEqual([]);
    createOwnersFile(file, emptyPolicy);
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['{}\n', 0o600]);
    createOwnersFile(file, 'something else');
    expect(readFileSync(file, 'utf8')).toBe('{}\n');
    ok(await writer().add({ name: 'bob', key: keyB }));
    expect(ok(own.policy()).of(keyB)?.name).toBe('bob');
    // By hand, of the same size, within the same moment.
    writeFileSync(file, readFileSync(file, 'utf8').replace('bob', 'rob'));
    expect(ok(own.policy()).of(keyB)?.name).toBe('rob');
    writeFileSync(file, '{ "bob": ');
    expect(refused(own.policy()).code).toBe('store_unreadable');
    writeFileSync(file, '{}');
    expect(ok(own.policy()).of(keyB)).toBeUndefined();
  });

  it('that is gone after it was made takes no trust back: nothing is known until it is there again', () => {
    const kept = accountOf({ keyFile, policyFile: file, policyExists: true });
    const { code, message } = refused(kept.policy());
    expect([code, message]).toEqual([
      'store_unreadable',
      `${file} is gone; put it back, or write {} there to trust nobody`,
    ]);
    writeFileSync(file, '{}');
    expect(ok(kept.policy()).peers).toEqual([]);
    rmSync(file);
    expect(refused(kept.policy()).code).toBe('store_unreadable');
  });

  it('is written sorted and readable, with what others wrote kept, its mode too', async () => {
    writeFileSync(
      file,
      `{"zoe":{"key":"${keyA}","note":"of \\"work\\"","list":[1,{"a":null}]},"10":{"key":"${keyOf(1)}"}}`,
    );
    chmodSync(file, 0o640);
    ok(await writer().add({ name: 'bob', key: keyB }));
    expect(readFileSync(file, 'utf8')).toBe(
      [
        '{',
        '  "10": {',
        `    "key": "${keyOf(1)}"`,
        '  },',
        '  "bob": {',
        `    "key": "${keyB}"`,
        '  },',
        '  "zoe": {',
        `    "key": "${keyA}",`,
        '    "note": "of \\"work\\"",',
        '    "list": [',
        '      1,',
        '      {',
        '        "a": null',
        '      }',
        '    ]',
        '  }',
        '}',
        '',
      ].join('\n'),
    );
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(ok(await writer().remove(keyA))).toMatchObject({ name: 'zoe' });
    expect(ok(await writer().remove(keyA))).toBeUndefined();
    ok(await writer().remove(keyB));
    ok(await writer().remove(keyOf(1)));
    expect(readFileSync(file, 'utf8')).toBe('{}\n');
    expect(readdirSync(directory).sort()).toEqual(['peers.json', 'peers.json.lock']);
    ok(await writer().add({ name: '__proto__', key: keyB }));
    expect(ok(account().policy()).named('__proto__')?.key).toBe(keyB);
    writeFileSync(file, '{ "broken": ');
    expect(refused(await writer().add({ name: 'x', key: keyA })).code).toBe('store_unreadable');
    expect(readFileSync(file, 'utf8')).toBe('{ "broken": ');
  });

  it('is written through links to the one real file, under its one lock', async () => {
    const real = path.join(directory, 'dotfiles');
    mkdirSync(real, { mode: 0o700 });
    const elsewhere = path.join(directory, 'elsewhere');
    mkdirSync(elsewhere, { mode: 0o700 });
    const second = path.join(elsewhere, 'peers.json');
    symlinkSync('../dotfiles/linked.json', second);
    symlinkSync(path.join(real, 'peers.json'), path.join(real, 'linked.json'));
    symlinkSync(path.join(real, 'peers.json'), file);
    await Promise.all([
      ...Array.from({ length: 5 }, async (_, n) =>
        ok(await writer().add({ name: `a${n}`, key: keyOf(10 + n) })),
      ),
      ...Array.from({ length: 5 }, async (_, n) =>
        ok(await writer(second).add({ name: `b${n}`, key: keyOf(20 + n) })),
      ),
    ]);
    expect(ok(account().policy()).peers).toHaveLength(10);
    expect(readdirSync(real).sort()).toEqual(['linked.json', 'peers.json', 'peers.json.lock']);
    expect([lstatSync(file).isSymbolicLink(), readlinkSync(second)]).toEqual([
      true,
      '../dotfiles/linked.json',
    ]);
  });

  it('is not read where others could write it, nor where it is no file', () => {
    writeFileSync(file, '{}');
    for (const mode of [0o620, 0o602, 0o666]) {
      chmodSync(file, mode);
      expect(refused(account().policy())).toMatchObject({
        code: 'insecure_path',
        message: expect.stringMatching(/chmod go-w/),
      });
    }
    chmodSync(file, 0o644);
    expect(ok(account().policy()).peers).toEqual([]);
    chmodSync(directory, 0o777);
    expect(refused(account().policy()).code).toBe('insecure_path');
    chmodSync(directory, 0o700);
    rmSync(file);
    mkdirSync(file);
    expect(refused(account().policy()).code).toBe('insecure_path');
    rmSync(file, { recursive: true });
    execFileSync('mkfifo', [file]);
    expect(refused(account().policy()).code).toBe('insecure_path');
  });
});

describe('identity.key', () => {
  const create = (replace = false, seed = 7) =>
    identityFile(keyFile).create(new Uint8Array(32).fill(seed), { replace });

  it('is read without the white space around it, and signs as its key', () => {
    const { key } = ok(create());
    expect([readFileSync(keyFile, 'utf8'), lstatSync(keyFile).mode & 0o777]).toMatchObject([
      `${Buffer.alloc(32, 7).toString('base64url')}\n`,
      0o600,
    ]);
    const own = account();
    expect(ok(own.identity())).toMatchObject({ key, seed: new Uint8Array(32).fill(7) });
    writeFileSync(keyFile, `\n  ${Buffer.alloc(32, 7).toString('base64url')} \r\n\n`);
    expect(ok(own.identity()).key).toBe(key);
    expect(refused(create(false, 8)).message).toContain('--force');
    expect(ok(own.identity()).key).toBe(key);
    ok(create(true, 8));
    expect(ok(own.identity()).key).not.toBe(key);
    expect(lstatSync(keyFile).mode & 0o777).toBe(0o600);
  });

  it('that is missing or malformed is identity_unavailable', () => {
    expect(refused(account().identity())).toMatchObject({
      code: 'identity_unavailable',
      message: expect.stringContaining('postbell identity create'),
    });
    const seed = Buffer.alloc(32, 7).toString('base64url');
    for (const text of [
      '',
      '\n',
      seed.slice(1),
      `${seed}A`,
      `${seed}=`,
      seed.replace('B', '+'),
      `${seed.slice(0, 42)}d`,
      `${seed} ${seed}`,
      'x'.repeat(2_000),
    ]) {
      writeFileSync(keyFile, text, { mode: 0o600 });
      const { code, message } = refused(account().identity());
      expect([text, code]).toEqual([text, 'identity_unavailable']);
      if (text.trim() !== '') expect(message).not.toContain(text.trim());
    }
  });
});

describe('the relays of the account', () => {
  const relays = (listed?: string) => relaysOf(listed === undefined ? {} : { POSTBELL_RELAYS: listed });

  it('are canonical origins, each once; a bad entry is one line that names it', () => {
    expect([relays(), relays(''), relays('  ')]).toEqual([[], [], []]);
    expect(relays('https://Relay.Example:443/, http://127.0.0.1:9000,https://relay.example')).toEqual([
      'https://relay.example',
      'http://127.0.0.1:9000',
    ]);
    for (const bad of [
      'relay.example',
      'ftp://x',
      'https://x/path',
      'https://u:p@x',
      'https://x?',
      'https://x#',
      ',',
      'https://',
    ])
      expect([bad, refused(relays(`https://good.example,${bad}`)).message.split('\n').length]).toEqual([
        bad,
        1,
      ]);
    expect(refused(relays('https://x/path')).message).toContain('"https://x/path"');
    expect(refused(relays([1, 2, 3, 4, 5].map((n) => `https://r${n}`).join())).message).toContain(
      'more than 4',
    );
  });
});
