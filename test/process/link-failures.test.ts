// What a person meets when something is wrong between two machines: each command and the log say in one line what it is and what to do,
// and once it is mended, the mail that was sent meanwhile arrives by itself.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { type Answer, type Front, openFront } from './front.ts';
import { until } from './home.ts';
import {
  configOf,
  type Machine,
  openMachine,
  openRelay,
  pairByDialogue,
  type RelayProcess,
} from './machines.ts';
import { pendingAt, send, stored } from './many.ts';

interface Scene {
  relay: RelayProcess;
  front: Front;
  alice: Machine;
  bob: Machine;
}

/** Two machines that trust each other, and their relay behind a server that may be broken. */
async function openScene({ onTestFinished }: TestContext): Promise<Scene> {
  const relay = await openRelay();
  onTestFinished(() => relay.end());
  const front = await openFront(relay);
  onTestFinished(() => front.end());
  const [alice, bob] = [await openMachine('alice', front.origin), await openMachine('bob', front.origin)];
  onTestFinished(async () => {
    await Promise.all([alice.end(), bob.end()]);
  });
  await Promise.all([alice.startRouter(), bob.startRouter()]);
  await pairByDialogue(alice, bob);
  return { relay, front, alice, bob };
}

interface Link {
  relays: { origin: string; failure?: string; clock?: string }[];
  why?: string;
}

const linkOf = async (at: Machine): Promise<Link> => (await at.ask(['router', 'status'])).link as Link;
const failureAt = async (at: Machine): Promise<string | undefined> => (await linkOf(at)).relays[0]?.failure;

/** One row, with its level and its remedy. */
async function doctorAt(at: Machine, row: string): Promise<string> {
  const { stdout } = await at.run(['doctor']);
  return stdout.split('\n').find((line) => line.split(/ +/)[1] === row) ?? '';
}

interface Line {
  time: number;
  msg: string;
  why?: string;
}

const linesOf = (at: Machine): Line[] =>
  at
    .log()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

/** Whatever goes on, nothing is said twice within a second. */
function expectCalm(at: Machine): void {
  const last = new Map<string, number>();
  for (const { time, ...line } of linesOf(at)) {
    const text = JSON.stringify(line);
    expect([text, time - (last.get(text) ?? 0) >= 1_000]).toEqual([text, true]);
    last.set(text, time);
  }
}

const says =
  (status: number, type: string, body = '', more: Record<string, string> = {}): Answer =>
  (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': type, ...more });
    response.end(body);
  };

const html = '<!doctype html><title>Welcome</title>';
const isThat = 'which no Postbell relay does: is that its address?';
const doesIt = 'does the relay behind that address run?';
/** How it fails, and what is said of it after its name; of a post apart where that differs. */
const unwell: [string, Answer | 'shut', string, string?][] = [
  ['a page', says(200, 'text/html', html), `answers 200 with text/html, ${isThat}`],
  ['no such page', says(404, 'text/html', html), `answers 404 with text/html, ${isThat}`],
  [
    'a proxy without its relay',
    says(502, 'text/html', html),
    `answers 502 with text/html, which no Postbell relay does: ${doesIt}`,
  ],
  [
    'a server that fails',
    says(500, 'application/json', '{"error":"oh"}'),
    `answers 500 in words of no Postbell relay: ${doesIt}`,
  ],
  ['the wrong type', says(200, 'text/plain', '{"accepted":true}'), `answers 200 with text/plain, ${isThat}`],
  [
    'another service',
    says(200, 'application/json', '{}'),
    'lists no items, which a Postbell relay does: is that its address?',
    'does not say that it took the item, which a Postbell relay does: is that its address?',
  ],
  [
    'a redirect',
    says(302, 'text/html', '', { location: 'https://elsewhere.example/' }),
    'sends elsewhere (302); list the address of the relay itself',
  ],
  ['a closed port', 'shut', 'refuses connections: is it running?'],
];

async function expectSaid(at: Machine, origin: string, what: string, ofPosts = what): Promise<void> {
  const text = `the relay ${origin} ${what}`;
  await until(`the router says: ${text}`, async () => (await failureAt(at)) === text, 60_000);
  await until(
    `it is said of what waits: ${ofPosts}`,
    async () => (await pendingAt(at)).why === `the relay ${origin} ${ofPosts}`,
    60_000,
  );
  const row = await doctorAt(at, 'relays');
  expect(row).toContain(`warn  relays `);
  expect(row).toContain(text);
  expect(row).toContain('→ look at the relay, and at POSTBELL_RELAYS where the router was started');
  expect(linesOf(at).filter(({ msg, why }) => msg === 'relay' && why === text)).toHaveLength(1);
}

async function expectWell(at: Machine, origin: string): Promise<void> {
  await until(
    'the router says that the relay answers',
    async () => (await failureAt(at)) === undefined,
    60_000,
  );
  expect(await doctorAt(at, 'relays')).toMatch(
    `pass  relays               ${origin}: the router drains them`,
  );
  expect(linesOf(at).at(-1)).toMatchObject({ msg: 'relay', why: 'answers again' });
}

describe.concurrent('a relay', () => {
  it('that is none, or is not there, is named with what it does and what to look at; mail waits for it', async (context) => {
    const { front, alice, bob } = await openScene(context);
    const sent: string[] = [];
    for (const [name, how, what, ofPosts] of unwell) {
      if (how === 'shut') await front.shut();
      else front.answer(how);
      await send(alice, 'bob', [name]);
      sent.push(name);
      await expectSaid(alice, front.origin, what, ofPosts);
      expect(stored(bob)).toEqual(sent.slice(0, -1));
      await front.mend();
      await until(`what was sent to ${name} arrives`, () => stored(bob).length === sent.length, 30_000);
      await until('nothing waits', async () => (await pendingAt(alice)).count === 0);
      await expectWell(alice, front.origin);
    }
    expect(stored(bob)).toEqual(sent);
    for (const one of [alice, bob]) expectCalm(one);
  }, 240_000);

  it('that takes connections and is silent is given up after its time; a slow one is waited for', async (context) => {
    const { front, alice, bob } = await openScene(context);
    front.answer(undefined);
    await send(alice, 'bob', ['to a silent one']);
    // A request that asks the relay to wait is given that much longer.
    const text = /^the relay \S+ gives no answer within (?:30|55) s$/;
    await until('the router says so', async () => text.test((await failureAt(alice)) ?? ''), 150_000);
    expect(await doctorAt(alice, 'relays')).toMatch(/ gives no answer within (?:30|55) s \(since /);
    const ofPosts = `the relay ${front.origin} gives no answer within 30 s`;
    await until('it is said of what waits', async () => (await pendingAt(alice)).why === ofPosts, 60_000);
    await front.mend(1_500);
    await until('it arrives', () => stored(bob).length === 1, 90_000);
    await until('the relay is said to answer', async () => (await failureAt(alice)) === undefined, 60_000);
    await send(alice, 'bob', ['to a slow one']);
    await until('it arrives', () => stored(bob).length === 2, 30_000);
    expect(stored(bob)).toEqual(['to a silent one', 'to a slow one']);
    expect(await failureAt(alice)).toBeUndefined();
    for (const one of [alice, bob]) expectCalm(one);
  }, 240_000);

  it('whose name leads nowhere is named; when it is spelled right, mail of both sides arrives', async (context) => {
    const { front, alice, bob } = await openScene(context);
    await alice.endRouter();
    const wrong = 'http://relay.invalid:7420';
    alice.env.POSTBELL_RELAYS = wrong;
    await alice.startRouter();
    await Promise.all([send(alice, 'bob', ['there']), send(bob, 'alice', ['back'])]);
    // As the resolver of this machine has it.
    const text =
      /^the relay http:\/\/relay\.invalid:7420 has a name that (?:is not known: is it spelled right|cannot be looked up now: is this machine online)\?$/;
    await until('the router says so', async () => text.test((await failureAt(alice)) ?? ''));
    expect(await doctorAt(alice, 'relays')).toContain(
      `warn  relays               the relay ${wrong} has a name`,
    );
    // The peer is still reached where it says, which is in public or nowhere.
    await until('it is said of what waits', async () =>
      ((await pendingAt(alice)).why ?? '').startsWith(`the relay ${front.origin} is not asked: `),
    );
    expect((await pendingAt(alice)).why).toMatch(/; where it is yours, list it in POSTBELL_RELAYS$/);
    expectCalm(alice);
    await alice.endRouter();
    alice.env.POSTBELL_RELAYS = front.origin;
    await alice.startRouter();
    await until('all arrives', () => stored(bob).length === 1 && stored(alice).length === 1, 30_000);
    expect([stored(bob), stored(alice)]).toEqual([['there'], ['back']]);
  }, 120_000);
});

interface Broken {
  name: string;
  file: 'peers.json' | 'identity.key';
  make(file: string, text: string): void;
  mend(file: string, text: string): void;
  /** Everywhere. */
  said(file: string): string;
}

const writeBack = (file: string, text: string): void => writeFileSync(file, text);
const isRoot = process.getuid?.() === 0;

const broken: Broken[] = [
  {
    name: 'a list that is cut off',
    file: 'peers.json',
    make: (file, text) => writeFileSync(file, text.slice(0, 20)),
    mend: writeBack,
    said: (file) => `${file}: line 3: the text is no JSON here; mend it`,
  },
  {
    name: 'a key in it that is none',
    file: 'peers.json',
    make: (file) => writeFileSync(file, '{ "alice": { "key": "abc" } }\n'),
    mend: writeBack,
    said: (file) =>
      `${file}: line 1: the key of "alice" is no public key; put the 43 characters that its owner gave`,
  },
  {
    name: 'a list that others can write',
    file: 'peers.json',
    make: (file) => chmodSync(file, 0o666),
    mend: (file) => chmodSync(file, 0o600),
    said: (file) => `others can write ${file}; chmod go-w it`,
  },
  {
    name: 'a directory in its place',
    file: 'peers.json',
    make: (file) => {
      rmSync(file);
      mkdirSync(file);
    },
    mend: (file, text) => {
      rmdirSync(file);
      writeFileSync(file, text, { mode: 0o600 });
    },
    said: (file) => `${file} is no regular file; move it away, and put the file back`,
  },
  {
    name: 'a key that others can read',
    file: 'identity.key',
    make: (file) => chmodSync(file, 0o644),
    mend: (file) => chmodSync(file, 0o600),
    said: (file) => `others have access to ${file} (mode 0644); chmod 600 it`,
  },
  {
    name: 'a key that is cut off',
    file: 'identity.key',
    make: (file, text) => writeFileSync(file, text.slice(0, 10)),
    mend: writeBack,
    said: (file) => `${file} does not hold a key: 43 characters of base64url; put it back from a copy`,
  },
  {
    name: 'a key of another account',
    file: 'identity.key',
    make: (file) => chownSync(file, 12_345, 12_345),
    mend: (file) => chownSync(file, process.getuid?.() as number, process.getgid?.() as number),
    said: (file) => `${file} belongs to another account; chown it to this one`,
  },
];

describe.concurrent('a file of the account', () => {
  it('that is gone takes no trust back: mail waits on both sides of it until the list is there again', async (context) => {
    const { relay, alice, bob } = await openScene(context);
    await until('the relay holds nothing', () => relay.items() === 0);
    const file = path.join(configOf(bob), 'peers.json');
    const text = `${file} is gone; put it back, or write {} there to trust nobody`;
    const away = `${file}~`;
    renameSync(file, away);
    expect((await linkOf(bob)).why).toBe(text);
    const row = await doctorAt(bob, 'peers');
    expect(row).toMatch(/^warn /);
    expect(row).toContain(text);
    await send(alice, 'bob', ['to one who lost his list']);
    await until('the relay has it', () => relay.items(bob.key) > 0);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(stored(bob)).toEqual([]);
    renameSync(away, file);
    await until('it arrives', () => stored(bob).length === 1, 60_000);
    expect((await linkOf(bob)).why).toBeUndefined();
  }, 120_000);

  it('[INB-012] that is broken is named with what is wrong in it and what to do; mail stays on the relay until it is mended', async (context) => {
    const { relay, alice, bob } = await openScene(context);
    await until('the relay holds nothing', () => relay.items() === 0);
    const sent: string[] = [];
    for (const { name, file: base, make, mend, said } of broken.filter(
      ({ name }) => isRoot || !/another account/.test(name),
    )) {
      const file = path.join(configOf(bob), base);
      const text = readFileSync(file, 'utf8');
      make(file, text);
      await send(alice, 'bob', [name]);
      sent.push(name);
      await expectKeptOut(bob, base, said(file));
      expect(stored(bob)).not.toContain(name);
      expect(relay.items(bob.key)).toBeGreaterThan(0);
      mend(file, text);
      await expectLetIn(bob, said(file));
    }
    await until('all arrives', () => stored(bob).length === sent.length, 90_000);
    expect(stored(bob).toSorted()).toEqual(sent.toSorted());
    await until('the relay holds nothing', () => relay.items() === 0, 60_000);
    for (const one of [alice, bob]) expectCalm(one);
  }, 240_000);
});

async function expectKeptOut(at: Machine, base: Broken['file'], text: string): Promise<void> {
  expect((await linkOf(at)).why).toBe(text);
  const row = await doctorAt(at, base === 'peers.json' ? 'peers' : 'identity');
  expect(row).toMatch(/^warn /);
  expect(row).toContain(`${text}; until it is mended nothing `);
  expect(row).toContain('→ mend the file that is named');
  expect(await doctorAt(at, 'relays')).toContain(text);
  const words = ['send', 'somebody', '--peer', 'alice', '--project', 'shop'];
  for (const asked of [await at.run(['peer', 'list']), await at.run(words, 'hello')])
    expect(asked).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`: ${text} (`) });
  expect(await pendingAt(at)).toEqual({ count: 0 });
  expect(linesOf(at).filter(({ why }) => why === text)).toMatchObject([{ msg: 'nothing can be taken in' }]);
}

async function expectLetIn(at: Machine, text: string): Promise<void> {
  expect((await linkOf(at)).why).toBeUndefined();
  expect(linesOf(at).at(-1)).toMatchObject({ msg: 'mail is taken in again', after: text });
  for (const row of ['peers', 'identity']) expect(await doctorAt(at, row)).toMatch(/^pass /);
}

/** The router's own clock, an hour ahead. */
const hourAhead = `--import data:text/javascript,${encodeURIComponent('const was = Date.now; Date.now = () => was() + 3_600_000;')}`;

describe.concurrent('a clock', () => {
  it('that is an hour ahead: its relay and its peer are named; mail that the peer refused for it goes out when it is right', async (context) => {
    const { front, alice, bob } = await openScene(context);
    await alice.endRouter();
    alice.env.NODE_OPTIONS = hourAhead;
    await alice.startRouter();
    await send(alice, 'bob', ['hello']);
    const text = `this machine's clock is about 60 min ahead of that of the relay ${front.origin}; set the one that is wrong: peers refuse what is signed more than a minute ahead of their time, or a day behind it`;
    await until('the router says so', async () => (await linkOf(alice)).relays[0]?.clock === text);
    expect(linesOf(alice).filter(({ msg }) => msg === 'clock')).toMatchObject([{ why: text }]);
    expect(await doctorAt(alice, 'relays')).toBe(
      `warn  relays               ${text}  → date -u, here and where the relay runs`,
    );
    await until('the peer says that it refused it', async () =>
      (await doctorAt(alice, 'link')).includes(
        'refused mail from here for the time at which it was signed, more than a minute ahead of its clock or a day behind',
      ),
    );
    expect(stored(bob)).toEqual([]);
    await alice.endRouter();
    delete alice.env.NODE_OPTIONS;
    await alice.startRouter();
    await until('it arrives', () => stored(bob).length > 0, 60_000);
    expect(stored(bob)).toEqual(['hello']);
    await until(
      'the router says nothing of its clock',
      async () => {
        const [relay] = (await linkOf(alice)).relays;
        return relay !== undefined && relay.clock === undefined;
      },
      30_000,
    );
  }, 120_000);
});
