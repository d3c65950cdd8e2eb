// Machines of different people in one place: each a home with a router of its own, and a relay between them that a test may kill.
// The relay lies at 127.0.0.2, where no other program of this machine takes a port while it is away.

import { cpSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { fingerprint } from '../../src/crypto/fingerprint.ts';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, type Env, type Finished, postbell, program, type Receipt } from './postbell.ts';
import { openOther, type Where } from './session.ts';
import { openTerminal, type TestTerminal } from './terminal.ts';

/** Where every relay of these tests listens. */
export const relayHost = '127.0.0.2';

export interface RelayProcess {
  origin: string;
  port: number;
  /** As the relay's own log says it. */
  log(): string;
  /** By -9. */
  kill(): Promise<void>;
  /** At the same port, over the same store. */
  start(): Promise<void>;
  /** How many items lie in all its queues, or in those of one key, and names of the queues; asked of its store. */
  items(key?: string): number;
  queues(): string[];
}

/** @param within as of a home; a relay there is at a host of its own, and may need more flags */
export async function openRelay({
  within = [],
  host = relayHost,
  flags = [],
}: {
  within?: readonly string[];
  host?: string;
  flags?: readonly string[];
} = {}): Promise<RelayProcess & { end(): Promise<void> }> {
  const home = makeHome({}, within);
  let running: Started;
  let listen = `${host}:0`;
  let origin = '';
  const start = async (): Promise<void> => {
    running = home.start(['relay', '--listen', listen, ...flags]);
    const { stdout, stderr, exited } = running;
    let ended = false;
    void exited.then(() => {
      ended = true;
    });
    await until('the relay says where it is', () => ended || stdout().endsWith('\n'));
    if (ended) throw new Error(stderr());
    origin = (JSON.parse(stdout()) as { origin: string }).origin;
    listen = new URL(origin).host;
  };
  const ask = <T>(sql: string): T[] => {
    const store = new BetterSqlite3(path.join(home.env.POSTBELL_HOME as string, 'relay.db'), {
      readonly: true,
    });
    try {
      return store.prepare(sql).pluck().all() as T[];
    } finally {
      store.close();
    }
  };
  await start();
  return {
    origin,
    port: Number(new URL(origin).port),
    log: () => running.stderr(),
    kill: async () => {
      running.child.kill('SIGKILL');
      await running.exited;
    },
    start,
    items: (key = '') =>
      ask<number>(
        `SELECT count(*) FROM item JOIN queue ON queue.number = item.queue WHERE name LIKE '${key}%'`,
      )[0] as number,
    queues: () => ask<string>('SELECT name FROM queue ORDER BY name'),
    end: () => home.end(),
  };
}

/** Where the key and the list of peers lie. */
export const configOf = ({ dir }: Home): string => path.join(dir, '.config', 'postbell');

/** Whoever has an identity, in whatever home. */
export interface Account extends Where {
  name: string;
  key: string;
  /** The one JSON line of a command that succeeds. */
  ask(words: string[], input?: string): Promise<Record<string, unknown>>;
}

export interface Machine extends Home, Account {
  /** Lines of the router that was started last. */
  log(): string;
  run(words: string[], input?: string, more?: Env): Promise<Finished>;
  startRouter(): Promise<void>;
  /** By -9. */
  killRouter(): Promise<void>;
  /** As its owner ends it. */
  endRouter(): Promise<void>;
  /** Rows of its store. */
  rows<T>(sql: string): T[];
}

/** A home of its own with an identity, that of another machine where one is given; its router is not started yet. */
export async function openMachine(
  name: string,
  origin: string,
  { same, within = [], ...more }: { env?: Env; same?: Machine; within?: readonly string[] } = {},
): Promise<Machine> {
  const home = makeHome({ POSTBELL_RELAYS: origin, POSTBELL_NAME: name, ...more.env }, within);
  const { env, project } = home;
  const ask = (words: string[], input = '') => answer(env, project, words, input);
  if (same === undefined) await ask(['identity', 'create', '--json']);
  else cpSync(configOf(same), configOf(home), { recursive: true });
  const { key } = await ask(['identity', 'show', '--json']);
  let router: Started | undefined;
  const ended = async (signal: NodeJS.Signals): Promise<void> => {
    router?.child.kill(signal);
    await router?.exited;
    router = undefined;
  };
  return {
    ...home,
    name,
    key: key as string,
    log: () => router?.stderr() ?? '',
    run: (words, input = '', extra = {}) => postbell({ ...env, ...extra }, project, words, input),
    ask,
    startRouter: async () => {
      router = home.start(['router']);
      const { pid } = router;
      await until(`the router of ${name} answers`, async () => {
        const { code, stdout } = await postbell(env, project, ['router', 'status']);
        return code === 0 && (JSON.parse(stdout) as { pid: number }).pid === pid;
      });
    },
    killRouter: () => ended('SIGKILL'),
    endRouter: () => ended('SIGTERM'),
    rows: <T>(sql: string) => {
      const store = new BetterSqlite3(path.join(env.POSTBELL_HOME as string, 'postbell.db'), {
        readonly: true,
      });
      try {
        return store.prepare(sql).all() as T[];
      } finally {
        store.close();
      }
    },
  };
}

export interface Identity {
  key: string;
  fingerprint: string;
  device: string;
  door: string;
  address: string;
}

export const identityOf = async (machine: Account, ...flags: string[]): Promise<Identity> => {
  const shown: unknown = await machine.ask(['identity', 'show', ...flags, '--json']);
  return shown as Identity;
};

export interface Request {
  key: string;
  fingerprint: string;
  pair_code: string;
  claimed_name: string;
}

/** Once a request has come. */
export async function requestAt(machine: Account): Promise<Request> {
  let found: Request[] = [];
  await until(`${machine.name} is asked to pair`, async () => {
    found = (await machine.ask(['peer', 'requests', '--json'])).requests as Request[];
    return found.length > 0;
  });
  return found[0] as Request;
}

interface ListedPeer {
  name: string;
  key: string;
  devices: { device: string }[];
}

export const peersOf = async (machine: Account): Promise<ListedPeer[]> =>
  (await machine.ask(['peer', 'list', '--json'])).peers as ListedPeer[];

/** Each knows a machine of the other. */
const mutual = (asker: Account, accepter: Account): Promise<void> =>
  until(`${asker.name} and ${accepter.name} know each other`, async () => {
    const [theirs, ours] = [await peersOf(asker), await peersOf(accepter)];
    const knows = (list: ListedPeer[], { key }: Account) =>
      list.some((one) => one.key === key && one.devices.length > 0);
    return knows(theirs, accepter) && knows(ours, asker);
  });

/** A tool of pairing, whose person types the last group of the fingerprint that he was shown. */
export async function inDialogue(
  machine: Account,
  shown: string,
  tool: string,
  input: object,
): Promise<void> {
  const person = { words: ['--no-register'], person: () => shown.slice(-4) };
  const session = await openOther(machine, { CLAUDE_CODE_SESSION_ID: 'pairing' }, person);
  const { isError, data } = await session.call(tool, input);
  await session.close();
  if (isError) throw new Error(JSON.stringify(data));
}

/** Both persons confirm in the dialogues of their hosts, which takes no terminal; each is called by its own name. */
export async function pairByDialogue(asker: Account, accepter: Account): Promise<void> {
  await askToPair(asker, accepter.name, (await identityOf(accepter)).address);
  const { key, fingerprint } = await requestAt(accepter);
  await inDialogue(accepter, fingerprint, 'accept_pair', { key, name: asker.name });
  await mutual(asker, accepter);
}

/** The request alone. */
export async function askToPair(asker: Account, name: string, target: string): Promise<void> {
  const [, key = ''] = /^postbell:([^.]+)\./.exec(target) ?? [];
  await inDialogue(asker, fingerprint(key), 'request_pair', { target, name });
}

export interface Typing {
  terminal: TestTerminal;
  /** Types a command of Postbell. */
  postbell(words: string): void;
  /** Once the screen shows it, wherever a line breaks. @returns the screen in one line */
  shows(text: string | RegExp): Promise<string>;
}

/** A person at a terminal of that machine. */
export function sitAt(machine: Machine): Typing {
  const terminal = openTerminal(machine);
  machine.atEnd(() => terminal.end());
  const screen = (): string => terminal.screen().replaceAll('\n', '');
  return {
    terminal,
    postbell: (words) =>
      terminal.type(`clear; ${process.execPath} ${program} ${words}; echo "ended with $?"`),
    shows: async (text) => {
      const isThere = (): boolean =>
        typeof text === 'string' ? screen().includes(text) : text.test(screen());
      await until(`${machine.name} reads ${text}`, isThere, 15_000);
      return screen();
    },
  };
}

/** As two people do who telephone. @returns the pair code that each of them saw */
export async function pairAtTerminals(asker: Machine, accepter: Machine): Promise<[string, string]> {
  const [near, far] = [sitAt(asker), sitAt(accepter)];
  const codeIn = (screen: string): string => /pair code +(\d{4} \d{4} \d{4})/.exec(screen)?.[1] ?? '';
  near.postbell(`peer pair '${(await identityOf(accepter)).address}' --as ${accepter.name}`);
  const seen = codeIn(await near.shows(/ended with \d/));
  const { key, fingerprint } = await requestAt(accepter);
  far.postbell(`peer accept ${key} --as ${asker.name}`);
  const shown = codeIn(await far.shows('To accept, type the last four characters'));
  far.terminal.type(fingerprint.slice(-4));
  await far.shows(`"${asker.name}" is a peer here now`);
  await mutual(asker, accepter);
  near.terminal.end();
  far.terminal.end();
  return [seen, shown];
}

/** Every fact that the sender knows of its message: kind and value, in order; and the receipts themselves. */
export async function factsAt(
  machine: Account,
  sent: { project: string; recipient: string; message_id: string },
): Promise<{ state: string; kinds: string[]; receipts: Receipt[] }> {
  const { project, recipient, message_id } = sent;
  const words = ['message', 'receipts', '--project', project, '--recipient', recipient];
  const found = await machine.ask([...words, '--message-id', message_id]);
  const receipts = found.receipts as Receipt[];
  return {
    state: found.delivery_state as string,
    receipts,
    kinds: receipts.map(({ receipt_kind, value }) => `${receipt_kind} ${value}`),
  };
}
