// `postbell identity`: one key an account, made once, read by nobody else.

import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, makeHome } from './home.ts';
import { answer, type Env, postbell } from './postbell.ts';

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.end());

const config = (...parts: string[]) => path.join(home.dir, '.config', 'postbell', ...parts);
const keyFile = () => config('identity.key');
const run = (words: string[], more: Env = {}, plain = false) =>
  postbell({ ...home.env, ...more }, home.project, ['identity', ...words], '', plain);
const show = (more: Env = {}) =>
  answer({ ...home.env, ...more }, home.project, ['identity', 'show', '--json']);
const failure = async (words: string[], more: Env = {}) => {
  const { code, stdout, stderr } = await run([...words, '--json'], more, true);
  expect([words, code, stdout]).toEqual([words, 1, '']);
  return JSON.parse(stderr).error as { code: string; message: string };
};

describe('the key of an account', () => {
  it('[PEER-003] is made once whoever runs at once, for this account alone, and is replaced by --force alone', async () => {
    const mask = process.umask(0);
    const runs = await Promise.all(Array.from({ length: 8 }, () => run(['create', '--json']))).finally(() =>
      process.umask(mask),
    );
    const made = runs.filter(({ code }) => code === 0);
    expect(made).toHaveLength(1);
    const { key, path: file } = JSON.parse((made[0] as { stdout: string }).stdout) as Record<string, string>;
    for (const { stderr } of runs.filter(({ code }) => code !== 0))
      expect(JSON.parse(stderr).error.message).toMatch(/there is a key already/);
    expect(file).toBe(keyFile());
    expect(readFileSync(keyFile(), 'utf8')).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect([lstatSync(keyFile()).mode & 0o777, lstatSync(config()).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readdirSync(config())).toEqual(['identity.key']);
    expect((await show()).key).toBe(key);
    // What an editor leaves around it does no harm.
    const text = readFileSync(keyFile(), 'utf8');
    writeFileSync(keyFile(), `\n  ${text.trim()}  \n\n`);
    expect((await show()).key).toBe(key);
    expect((await failure(['create'])).message).toContain('--force');
    expect((await show()).key).toBe(key);
    expect((await run(['create', '--force'])).code).toBe(0);
    const replaced = (await show()).key;
    expect(replaced).not.toBe(key);
    // Open to others it is refused, with what mends it, and neither mended nor used.
    for (const mode of [0o640, 0o604, 0o660]) {
      chmodSync(keyFile(), mode);
      const { code, message } = await failure(['show']);
      expect([mode, code, message]).toEqual([
        mode,
        'insecure_path',
        expect.stringContaining(
          `others have access to ${keyFile()} (mode 0${mode.toString(8)}); chmod 600 it`,
        ),
      ]);
      expect(lstatSync(keyFile()).mode & 0o777).toBe(mode);
    }
    chmodSync(keyFile(), 0o600);
    renameSync(keyFile(), config('moved'));
    symlinkSync(config('moved'), keyFile());
    expect((await failure(['show'])).code).toBe('insecure_path');
    // Another path, another key.
    const elsewhere = path.join(home.dir, 'keys', 'work.key');
    mkdirSync(path.dirname(elsewhere), { mode: 0o700 });
    const own = { POSTBELL_KEY: elsewhere };
    const missing = await failure(['show'], own);
    expect([missing.code, missing.message]).toEqual([
      'identity_unavailable',
      expect.stringContaining(elsewhere),
    ]);
    expect((await run(['create'], own)).code).toBe(0);
    expect((await show(own)).key).not.toBe(replaced);
    const xdg = { XDG_CONFIG_HOME: path.join(home.dir, 'xdg') };
    expect((await run(['create'], xdg)).code).toBe(0);
    expect(readdirSync(path.join(home.dir, 'xdg', 'postbell'))).toEqual(['identity.key']);
    writeFileSync(elsewhere, 'no key at all\n');
    expect((await failure(['show'], own)).code).toBe('identity_unavailable');
  }, 60_000);

  it('gives each data directory a device and a door of its own, and an address where there is a relay', async () => {
    await run(['create']);
    const relays = { POSTBELL_RELAYS: 'https://one.example, https://two.example/' };
    const first = await show(relays);
    expect(first).toMatchObject({
      fingerprint: expect.stringMatching(/^([a-z2-7]{4}-){7}[a-z2-7]{4}$/),
      device: expect.stringMatching(/^[0-9a-f]{32}$/),
      address: `postbell:${String(first.key)}.${String(first.door)}@https://one.example,https://two.example`,
    });
    expect(await show(relays)).toEqual(first);
    expect((await show()).address).toBeNull();
    const second = await show({ ...relays, POSTBELL_HOME: path.join(home.dir, 'other') });
    expect(second.key).toBe(first.key);
    expect(new Set([first.device, first.door, second.device, second.door]).size).toBe(4);
    const anew = await run(['show', '--new-door'], relays);
    expect(anew.stdout).toMatch(/^The door is a new one/);
    expect((await show(relays)).door).not.toBe(first.door);
    const wrong = await failure(['show'], { POSTBELL_RELAYS: 'relay.example' });
    expect(wrong).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('"relay.example"'),
    });
    for (const words of [[], ['look'], ['show', 'x'], ['create', '--new-door']])
      expect((await failure(words)).code).toBe('usage');
  });
});
