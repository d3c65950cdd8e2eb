// `postbell host codex` in a throw-away home, with whatever Codex PATH finds.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { connectRouter } from '../../src/router/client.ts';
import { type Home, type Started, until } from './home.ts';
import { answer, factsOf } from './postbell.ts';

export interface Sent {
  message_id: string;
  recipient: string;
  project: string;
  native_delivery?: { status: string; receipt: Record<string, unknown> };
}

export interface CodexRunner extends Started {
  /** Once it says so. */
  thread: string;
}

export function codexRunners(home: Home) {
  const config = path.join(home.dir, 'codex.json');
  const configure = (over: object = {}): void => {
    const base = { version: 1, host: 'codex', principal_id: 'builder', workspace: home.project };
    writeFileSync(config, JSON.stringify({ ...base, ...over }), { mode: 0o600 });
  };
  configure();
  let keys = 0;
  const runtime = path.join(home.dir, 'data', 'runtime');
  const send = async (recipient: string, text: string): Promise<Sent> =>
    (await answer(home.env, home.project, ['send', recipient, '--json'], text)) as unknown as Sent;
  const project = async (): Promise<string> => (await send('nobody', 'which project is this')).project;
  return {
    config,
    configure,
    project,
    send,
    run: (more: Record<string, string> = {}): Started =>
      home.start(['host', 'codex', '--config', config], more),
    /** Once its thread is registered. */
    running: async (more: Record<string, string> = {}): Promise<CodexRunner> => {
      const runner = home.start(['host', 'codex', '--config', config], more);
      const thread = () => /thread (\S+) of Codex gets the mail of/.exec(runner.stderr())?.[1];
      await until('it says its thread', () => thread() !== undefined, 30_000);
      const id = thread() as string;
      const of = await project();
      await until('it is registered', async () => (await cards(of)).some((one) => one.session_id === id));
      return { ...runner, thread: id };
    },
    cards: async () => cards(await project()),
    sendExact: async (recipient: string, text: string): Promise<Sent> => {
      keys += 1;
      const words = [
        'message',
        'send',
        '--project',
        await project(),
        '--sender',
        'me',
        '--recipient',
        recipient,
      ];
      const more = ['--target-kind', 'session', '--idempotency-key', `exact-${keys}`, '--payload-stdin'];
      return (await answer(home.env, home.project, [...words, ...more], text)) as unknown as Sent;
    },
    facts: ({ project, recipient, message_id }: Sent) =>
      factsOf(home.env, home.project, { project, recipient, message_id }),
    /** Another process registers the session. */
    replace: async (session_id: string): Promise<void> => {
      const data = home.env.POSTBELL_HOME as string;
      const auth_token = readFileSync(path.join(data, 'router.token'), 'utf8').trim();
      const ports = { clock: systemClock, random: systemRandom };
      const client = await connectRouter(path.join(data, 'router-v1.sock'), ports);
      home.atEnd(() => client.close());
      const { postbell_version } = await client.request({ type: 'status', auth_token }, 5_000);
      const who = { session_id, project: await project(), principal_id: 'builder', host_kind: 'codex' };
      const bell = { adapter_kind: 'codex-queue', bell: 'codex-queue' };
      await client.request({ type: 'register', auth_token, postbell_version, ...who, ...bell }, 5_000);
    },
    /** The sockets of app-servers that lie about. */
    sockets: () => (existsSync(runtime) ? readdirSync(runtime).filter((name) => name.endsWith('.sock')) : []),
  };

  async function cards(of: string): Promise<Record<string, unknown>[]> {
    const words = ['message', 'discover', '--project', of, '--detail'];
    return (await answer(home.env, home.project, words).catch(() => ({ cards: [] }))).cards as never;
  }
}
