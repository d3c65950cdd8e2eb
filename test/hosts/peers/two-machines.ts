// Two people with a machine each, and a relay between them: on alice's a thread of the real Codex in a terminal, on bob's a session of
// the real Claude Code in another. Both directories are clones of one remote; each account admits the other.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { until } from '../../process/home.ts';
import { type Account, identityOf, openRelay, pairByDialogue } from '../../process/machines.ts';
import { answer, type Env } from '../../process/postbell.ts';
import { type CodexOffice, openCodexOffice } from '../codex.ts';
import type { Block } from '../model.ts';
import { dataIn, type Office, openOffice } from '../office.ts';
import type { Terminal } from '../terminal.ts';

export interface Letter {
  /** Of this machine. */
  message_id: string;
  project: string;
  sender: string;
  recipient: string;
  reply_to: string | null;
  payload: string;
}

/** One machine and the session there. */
export interface Side extends Account {
  terminal: Terminal;
  session: string;
  /** How its host is told of mail. */
  bell: string;
  /** Its mail with the other machine, in order. */
  letters(): Letter[];
  /** All that its model was sent, a text for each request of the session. */
  told(): string[];
  /** All that `receive_messages` answered it. */
  received(): string;
}

export interface TwoMachines {
  /** Of the relay. */
  origin: string;
  alice: Side;
  bob: Side;
  end(): Promise<void>;
}

export async function openTwoMachines(): Promise<TwoMachines> {
  const relay = await openRelay();
  const ending: (() => unknown)[] = [() => relay.end()];
  const end = async (): Promise<void> => {
    for (const one of ending.splice(0).reverse()) await one();
  };
  try {
    const of = (name: string, url: string) => ({
      env: (dir: string): Env => ({
        POSTBELL_HOME: path.join(dir, 'data'),
        POSTBELL_RELAYS: relay.origin,
        POSTBELL_NAME: name,
      }),
      before: async (env: Env, project: string) => {
        cloneIn(env, project, url);
        await answer(env, project, ['identity', 'create', '--json']);
      },
    });
    const codex = await openCodexOffice(of('alice', 'https://git.example/x/shop.git'));
    ending.push(() => codex.end());
    const claude = await openOffice(of('bob', 'https://bob@git.example/x/shop'));
    ending.push(() => claude.end());
    const [alice, bob] = [await accountOf('alice', codex), await accountOf('bob', claude)];
    await pairByDialogue(alice, bob);
    const [thread, session] = await Promise.all([openThread(codex), openSession(claude)]);
    return {
      origin: relay.origin,
      alice: { ...alice, ...thread, letters: () => lettersIn(alice.env) },
      bob: { ...bob, ...session, letters: () => lettersIn(bob.env) },
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Makes the directory a clone of the remote, as its owner reaches it. */
function cloneIn(env: Env, project: string, url: string): void {
  const git = (...words: string[]) => execFileSync('git', words, { cwd: project, env });
  git('init', '--quiet');
  git('remote', 'add', 'origin', url);
}

async function accountOf(
  name: string,
  { dir, env, project, atEnd }: Pick<Office, 'dir' | 'env' | 'project' | 'atEnd'>,
): Promise<Account> {
  const ask = (words: string[], input = '') => answer(env, project, words, input);
  const account = { name, key: '', dir, env, project, atEnd, ask };
  return { ...account, key: (await identityOf(account)).key };
}

type Host = Omit<Side, keyof Account | 'letters'>;

/** On an app-server of its own: told through that at once. */
async function openThread(codex: CodexOffice): Promise<Host> {
  await codex.serve();
  const { terminal, thread } = await codex.open();
  await until('the thread is live', async () => (await codex.card(thread)) !== undefined, 20_000);
  const { model } = codex;
  const requests = () => model.requestsOf(thread);
  return {
    terminal,
    session: thread,
    bell: 'codex-queue',
    told: () => requests().map((request) => model.text(request)),
    received: () => {
      const items = requests().flatMap(({ body }) => body.input);
      const calls = items.filter(({ name }) => name === 'receive_messages').map(({ call_id }) => call_id);
      return JSON.stringify(
        items.filter(({ type, call_id }) => type === 'function_call_output' && calls.includes(call_id)),
      );
    },
  };
}

/** Idle after its first turn. */
async function openSession(claude: Office): Promise<Host> {
  const terminal = await claude.tty('reviewer');
  await claude.reachable('reviewer');
  await terminal.type('hello');
  await terminal.waitForScreen(/● ok/, 20_000);
  const session = terminal.startedAs as string;
  const { model } = claude;
  return {
    terminal,
    session,
    bell: 'claude-listener',
    told: () => claude.turns(session).map((request) => model.text(request)),
    received: () => {
      const blocks = claude
        .turns(session)
        .flatMap(({ body }) => body.messages)
        .flatMap(({ content }): Block[] => (typeof content === 'string' ? [] : content));
      const calls = blocks.filter(({ name }) => name?.endsWith('receive_messages')).map(({ id }) => id);
      return JSON.stringify(
        blocks.filter(({ tool_use_id }) => tool_use_id !== undefined && calls.includes(tool_use_id)),
      );
    },
  };
}

function lettersIn(env: Env): Letter[] {
  const store = new BetterSqlite3(path.join(dataIn(env), 'postbell.db'), { readonly: true });
  try {
    const sql = `SELECT message_id, message.project, sender, recipient, reply_to, payload FROM message JOIN delivery USING (message_id)
      WHERE recipient <> 'nobody' ORDER BY message.seq`;
    return (store.prepare(sql).all() as Letter[]).map((one) => ({
      ...one,
      payload: JSON.parse(one.payload) as string,
    }));
  } finally {
    store.close();
  }
}
