// A throw-away home with the plugin in it, a scripted model, and `postbell up`: where real sessions exchange mail. All of it
// is ended with the test.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import {
  answer,
  type Env,
  factsOf,
  postbell,
  type Receipt,
  root,
  startUp,
  stopRouter,
} from '../process/postbell.ts';
import { mailAgent } from './agent.ts';
import {
  claudeHome,
  runClaude,
  type StreamSession,
  streamSession,
  type TtySession,
  ttySession,
} from './claude.ts';
import { type Model, type ModelRequest, type Script, startModel } from './model.ts';

export interface Sent {
  message_id: string;
  recipient: string;
  recipient_presence: string;
  project: string;
  native_delivery?: { status: string; adapter_kind: string };
}

export interface Office {
  dir: string;
  project: string;
  /** Of every session and command; a session's own name is added. */
  env: Env;
  model: Model;
  /** Who each session is, as it was told at its start; a scripted agent signs with it. */
  inboxes: Map<string, string>;
  /** A stream-JSON session, once its start hooks have ended. */
  stream(inbox: string | undefined, ...args: string[]): Promise<StreamSession>;
  /** A session in a terminal, once its prompt is shown. */
  tty(inbox: string | undefined, ...args: string[]): Promise<TtySession>;
  /** Once as many servers of this inbox are registered: mail to it is handed over. @returns the project */
  reachable(inbox: string, count?: number): Promise<string>;
  send(recipient: string, text: string, ...flags: string[]): Promise<Sent>;
  /** To one exact session. */
  sendExact(session: string, text: string): Promise<Sent>;
  /** To a name, and meant for one of its sessions alone. */
  sendMeant(recipient: string, session: string, text: string): Promise<Sent>;
  /** `receipt_kind value` of each fact, and the state. */
  facts(sent: Sent): Promise<{ state: string; kinds: string[]; receipts: Receipt[] }>;
  /** Records that hooks left. */
  records(): { hook: string; outcome: string; reason: string; time: string }[];
  /** All that the model was sent in this session. */
  texts(session: string): string;
  /** Requests of the session's own turns, without the host's side queries. */
  turns(session: string): ModelRequest[];
  /** Ends with the office. */
  atEnd(end: () => unknown): void;
  end(): Promise<void>;
}

export interface OfficeOptions {
  script?: Script;
  /** Without the permission to use the plugin's tools. */
  untrusted?: boolean;
  /** The folder whose marketplace is installed; undefined: none. */
  market?: string | undefined;
  settings?: object;
  /** Added to the environment of every process. */
  env?: (dir: string) => Env;
  /** What its owner does before a router runs. */
  before?: (env: Env, project: string) => Promise<unknown>;
}

const notices = /\[Postbell inbox notice\]/g;
/** How many notices of listeners are in the text. */
export const noticesIn = (text: string): number => text.match(notices)?.length ?? 0;

export async function openOffice(options: OfficeOptions = {}): Promise<Office> {
  const { script, untrusted = false, settings = {}, env: more, before } = options;
  const market = 'market' in options ? options.market : root;
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'pb-')));
  const project = path.join(dir, 'shop');
  mkdirSync(project);
  const inboxes = new Map<string, string>();
  const model = await startModel(script ?? mailAgent(inboxes));
  const allow = untrusted ? {} : { permissions: { allow: ['mcp__plugin_postbell_postbell', 'Bash'] } };
  const home = { dir, modelUrl: model.url, project, settings: { ...allow, ...settings } };
  const env = claudeHome({ ...home, extraEnv: more?.(dir) ?? {} });
  const ending: (() => unknown)[] = [
    () => rmSync(dir, { recursive: true, force: true }),
    () => model.close(),
  ];
  if (market !== undefined) await installPlugin(env, market, project);
  await before?.(env, project);
  const up = await startUp(env, project);
  ending.push(() => stopRouter(env, project), up.end);
  const own = (inbox: string | undefined): Env =>
    inbox === undefined ? env : { ...env, POSTBELL_RECIPIENT: inbox };
  const office: Office = {
    dir,
    project,
    env,
    model,
    inboxes,
    ...sessionsOf({ env, project, own, inboxes, ending, hooked: market !== undefined }),
    ...mailOf(env, project),
    records: () => recordsIn(env),
    texts: (session) =>
      model
        .requestsOf(session)
        .map((request) => model.text(request))
        .join('\n'),
    turns: (session) => model.requestsOf(session).filter(({ body }) => (body.tools ?? []).length > 0),
    atEnd: (end) => void ending.push(end),
    end: async () => {
      const faults: unknown[] = [];
      for (const end of ending.splice(0).reverse())
        await Promise.resolve()
          .then(end)
          .catch((error: unknown) => faults.push(error));
      if (faults.length > 0) throw faults[0];
    },
  };
  return office;
}

export async function installPlugin(env: Env, market: string, cwd: string): Promise<void> {
  for (const words of [
    ['plugin', 'marketplace', 'add', market],
    ['plugin', 'install', 'postbell@postbell'],
  ])
    expect(await runClaude(env, words, cwd)).toMatchObject({ code: 0 });
}

function sessionsOf({
  env,
  project,
  own,
  inboxes,
  ending,
  hooked,
}: {
  env: Env;
  project: string;
  own: (inbox: string | undefined) => Env;
  inboxes: Map<string, string>;
  ending: (() => unknown)[];
  hooked: boolean;
}): Pick<Office, 'stream' | 'tty'> {
  return {
    stream: async (inbox, ...args) => {
      const started = () => recordsIn(env).filter(({ hook }) => hook === 'session-start').length;
      const before = started();
      const session = streamSession(own(inbox), project, args);
      ending.push(session.end);
      // The floor says nothing on its stream before the first prompt.
      const hookEnded = () => expect.poll(started, { timeout: 20_000, interval: 50 }).toBeGreaterThan(before);
      const hostEnded = session.exited.then(({ code, signal }) => {
        throw new Error(`the host ended with ${signal ?? code} before its hook did: ${session.stderr()}`);
      });
      hostEnded.catch(() => {});
      if (hooked) await Promise.race([hookEnded(), hostEnded]);
      const name = (): void => {
        const id = session.sessionId();
        inboxes.set(id, inbox ?? `claude-session-${id}`);
      };
      const isFork = args.includes('--fork-session');
      // Only its first event tells which id it has.
      if (isFork)
        void session.waitFor(({ session_id }) => session_id !== undefined, 60_000).then(name, () => {});
      else name();
      return session;
    },
    tty: async (inbox, ...args) => {
      const session = await ttySession(own(inbox), project, args);
      ending.push(session.end);
      const id = session.startedAs;
      if (id !== undefined) inboxes.set(id, inbox ?? `claude-session-${id}`);
      await session.waitForScreen(/❯/, 20_000);
      return session;
    },
  };
}

export type Mail = Pick<Office, 'reachable' | 'send' | 'sendExact' | 'sendMeant' | 'facts'>;

/** Mail of the command line in this home and directory. */
export function mailOf(env: Env, project: string): Mail {
  let keys = 0;
  const send: Office['send'] = async (recipient, text, ...flags) =>
    (await answer(env, project, ['send', recipient, '--json', ...flags], text)) as unknown as Sent;
  const projectId = async (): Promise<string> => (await send('nobody', 'which project is this')).project;
  const message = async (recipient: string, text: string, more: string[]): Promise<Sent> => {
    keys += 1;
    const words = [
      'message',
      'send',
      '--project',
      await projectId(),
      '--sender',
      'me',
      '--recipient',
      recipient,
    ];
    const key = ['--idempotency-key', `exact-${keys}`, '--payload-stdin'];
    return (await answer(env, project, [...words, ...more, ...key], text)) as unknown as Sent;
  };
  return {
    send,
    sendExact: (session, text) => message(session, text, ['--target-kind', 'session']),
    sendMeant: (recipient, session, text) => message(recipient, text, ['--intended-session', session]),
    reachable: async (inbox, count = 1) => {
      const id = await projectId();
      const cards = async () => {
        const { code, stdout } = await postbell(env, project, ['message', 'discover', '--project', id]);
        if (code !== 0) return 0;
        return (JSON.parse(stdout).cards as { principal_id: string }[]).filter(
          (card) => card.principal_id === inbox,
        ).length;
      };
      await expect.poll(cards, { timeout: 20_000, interval: 150 }).toBe(count);
      return id;
    },
    facts: async ({ project: of, recipient, message_id }) => {
      const { state, receipts } = await factsOf(env, project, { project: of, recipient, message_id });
      return {
        state,
        receipts,
        kinds: receipts.map(({ receipt_kind, value }) => `${receipt_kind} ${value}`),
      };
    },
  };
}

/** Where the data of the product lie. */
export const dataIn = (env: Env): string =>
  env.POSTBELL_HOME ?? path.join(env.HOME as string, '.local', 'state', 'postbell');

export function recordsIn(env: Env): ReturnType<Office['records']> {
  const file = path.join(dataIn(env), 'hook-outcomes.jsonl');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Whether the process is a listener, as the plugin starts it. */
export const isListener = (pid: number): boolean => isPlugin(pid, 'wait');

/** Whether the plugin started the process, by this word. */
export function isPlugin(pid: number, by: string): boolean {
  try {
    const [, entry = '', word] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return entry.endsWith('launch.cjs') && word === by;
  } catch {
    return false;
  }
}

/** A marketplace as ours, whose listener is started otherwise. */
export function marketWith(dir: string, change: (hooks: string) => string): string {
  mkdirSync(dir);
  cpSync(path.join(root, '.claude-plugin'), path.join(dir, '.claude-plugin'), { recursive: true });
  cpSync(path.join(root, 'plugins'), path.join(dir, 'plugins'), { recursive: true });
  const file = path.join(dir, 'plugins', 'claude-code', 'hooks', 'hooks.json');
  writeFileSync(file, change(readFileSync(file, 'utf8')));
  return dir;
}

/** A listener that renews itself after 3 s of the 30 that its host gives it. */
export const renewing = (hooks: string): string =>
  hooks
    .replaceAll('"wait"', '"wait", "--renew-after-secs", "3"')
    .replaceAll('"timeout": 3600', '"timeout": 30');
