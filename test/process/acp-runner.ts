// `postbell host acp` over the scripted agent, in a home with a router.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Home, makeHome, type Started, until } from './home.ts';
import { answer, type Env } from './postbell.ts';
import { typed } from './typed.ts';

const scripted = fileURLToPath(new URL('acp-agent.mjs', import.meta.url));

export interface Logged {
  event: string;
  at: number;
  pid?: number;
  [more: string]: unknown;
}

export interface AcpHome {
  home: Home;
  project: string;
  config: string;
  /** What the config says beside the rest. */
  configure(over: object): void;
  /** How the agent begins. */
  script(script: object): void;
  /** What its turns do from now on. */
  turn(name: string): void;
  /** Lets a turn go on that is silent or holds. */
  go(): void;
  log(event?: string): Logged[];
  happened(event: string, count?: number, ms?: number): Promise<void>;
  run(more?: Env): Started;
  /** Once it is registered. */
  running(more?: Env): Promise<Started & { session: string }>;
  cards(): Promise<Record<string, unknown>[]>;
  send(over?: object): Promise<Record<string, unknown>>;
  toSession(session: string, over?: object): Promise<Record<string, unknown>>;
}

/** @param isFresh no router runs there yet */
export async function acpHome(isFresh = false): Promise<AcpHome> {
  const home = makeHome();
  if (!isFresh) home.start(['router']);
  const found = await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x');
  const project = found.project as string;
  const agent = path.join(home.dir, 'agent');
  const hosts = path.join(home.env.POSTBELL_HOME as string, 'hosts');
  for (const folder of [agent, hosts]) mkdirSync(folder, { mode: 0o700 });
  const config = path.join(hosts, 'acp.json');
  const configure = (over: object): void => {
    const command = [process.execPath, scripted];
    const base = { version: 1, host: 'acp', principal_id: 'builder', workspace: home.project, command };
    writeFileSync(config, JSON.stringify({ ...base, ...over }), { mode: 0o600 });
  };
  configure({});
  const file = (name: string): string => path.join(agent, name);
  const log = (event?: string): Logged[] =>
    (existsSync(file('log')) ? readFileSync(file('log'), 'utf8').split('\n').slice(0, -1) : [])
      .map((line) => JSON.parse(line) as Logged)
      .filter((one) => event === undefined || one.event === event);
  const run = (more: Env = {}): Started =>
    home.start(['host', 'acp', '--config', config], { AGENT_DIR: agent, ...more });
  let keys = 0;
  const send = async (over: object = {}): Promise<Record<string, unknown>> => {
    keys += 1;
    const letter = {
      project,
      sender: 'alice',
      recipient: 'builder',
      payload: 'hello',
      idempotency_key: `k${keys}`,
    };
    const [words, input] = typed('send', { ...letter, ...over });
    return answer(home.env, home.project, words, input);
  };
  return {
    home,
    project,
    config,
    configure,
    script: (script) => writeFileSync(file('script'), JSON.stringify(script)),
    turn: (name) => writeFileSync(file('turn'), name),
    go: () => writeFileSync(file('go'), ''),
    log,
    happened: (event, count = 1, ms = 15_000) =>
      until(`${count} ${event}`, () => log(event).length >= count, ms),
    run,
    running: async (more = {}) => {
      const started = run(more);
      const said = /session (\w+) of .* gets the mail/;
      await until(
        'it is registered',
        () => said.test(started.stderr()) || started.child.exitCode !== null,
        20_000,
      );
      const session = said.exec(started.stderr())?.[1];
      if (session === undefined) throw new Error(`it ended: ${started.stderr()}`);
      const isLive = async (): Promise<boolean> =>
        (await cardsOf(home, project)).some((card) => card.session_id === session);
      await until('it is live', isLive);
      return { ...started, session };
    },
    cards: () => cardsOf(home, project),
    send,
    toSession: (recipient, over = {}) => send({ recipient, target_kind: 'session', ...over }),
  };
}

async function cardsOf(home: Home, project: string): Promise<Record<string, unknown>[]> {
  const words = ['message', 'discover', '--project', project, '--detail'];
  return (await answer(home.env, home.project, words)).cards as Record<string, unknown>[];
}
