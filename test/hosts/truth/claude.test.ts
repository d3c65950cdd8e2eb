// The truth table: sessions of the real Claude Code, rung by their listener.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { until } from '../../process/home.ts';
import { program } from '../../process/postbell.ts';
import { mailAgent } from '../agent.ts';
import { claudeHome, type StreamSession, streamSession } from '../claude.ts';
import { describeWithClaude } from '../installed.ts';
import type { Block, ModelRequest, Script } from '../model.ts';
import { installPlugin, isListener, marketWith, type Office, openOffice } from '../office.ts';
import { formerRouter, haveRouter, killRouter, live, projectOf, whileLocked } from './faults.ts';
import { expectCell, type ModelView, type Place, type Who } from './observe.ts';
import { columnOf } from './page.ts';

let office: Office;
let place: Place;
/** The model leaves notices alone. */
let ignores = false;

const agent = mailAgent(new Map());
const script: Script = (turn) => {
  const { newest, toolResults } = turn;
  if (newest.includes('[Postbell inbox notice]')) return ignores ? { say: 'left alone' } : agent(turn);
  // A notice has a summary too.
  if (newest.includes('<summary>')) return { say: '<analysis>a</analysis>\n<summary>s</summary>' };
  if (toolResults.some(({ name, text }) => name.endsWith('receive_messages') && !text.startsWith('{')))
    return { say: 'I may not' };
  if (newest.includes('work for long'))
    return { tools: [{ name: 'Bash', input: { command: 'sleep 3; echo worked', description: 'works' } }] };
  return newest.includes('think for long') ? { sleepMs: 60_000, say: 'thought' } : agent(turn);
};

const blocksOf = ({ body }: ModelRequest): Block[] =>
  body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));

function newestOf({ body: { messages } }: ModelRequest): string {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return JSON.stringify(messages.slice(last + 1));
}

const view: ModelView = {
  mark: () => office.model.requests.length,
  since: (mark) => {
    const fresh = office.model.requests.slice(mark);
    const calls = fresh.flatMap((request) => blocksOf(request).filter(({ type }) => type === 'tool_use'));
    return {
      told: fresh.map(newestOf).join('\n'),
      all: fresh.map((request) => office.model.text(request)).join('\n'),
      calls: calls.map(({ name = '', input }) => `${name.split('__').at(-1)} ${JSON.stringify(input)}`),
    };
  },
};

async function open(options: Parameters<typeof openOffice>[0] = {}): Promise<void> {
  office = await openOffice({ script, ...options });
  place = { env: office.env, cwd: office.project, project: await projectOf(office.env, office.project) };
}

interface At {
  who: Who;
  session: StreamSession;
}
let names = 0;

/** A session that has had a turn, and waits with its listener. */
async function start(...args: string[]): Promise<At> {
  ignores = false;
  await haveRouter(place, office.atEnd);
  names += 1;
  const name = `alice-${names}`;
  const session = await office.stream(name, ...args);
  const who = { session: session.sessionId(), name };
  await live(place, who);
  session.say('hello');
  await session.waitResult(1, 20_000);
  await pause(500);
  return { who, session };
}

/** A live session, a fault, a look, an end. */
const withFault =
  (fault: (at: At) => unknown) =>
  async (expected: string): Promise<string> => {
    const at = await start();
    await fault(at);
    const said = await expectCell(expected, place, at.who, view);
    await at.session.end();
    return said;
  };

const wordOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[2] ?? '';
  } catch {
    return '';
  }
};
const gone = (who: Who): Promise<void> => live(place, who, 'absent');

const { cell, absent } = columnOf('claude');
const took = 'accepted / live / live / took it in';
const unheard = 'accepted / live / live / nothing';
const ended = 'not_live / gone / absent / nothing';

describeWithClaude('truth of its listener', () => {
  beforeAll(() => open());
  afterAll(() => office.end());

  // First: a version that was replaced once starts no router any more.
  cell('outdated', took, async (expected) => {
    const replaced = await formerRouter(place, office.dir, office.atEnd);
    const at = await start();
    await replaced();
    await live(place, at.who);
    const said = await expectCell(expected, place, at.who, view);
    await at.session.end();
    return said;
  });
  cell(
    'none',
    took,
    withFault(() => {}),
  );
  cell(
    'ignored',
    'accepted / live / live / notice',
    withFault(() => {
      ignores = true;
    }),
  );
  cell(
    'killed',
    ended,
    withFault(async ({ session, who }) => {
      session.kill('SIGKILL');
      await session.exited;
      await gone(who);
    }),
  );
  cell(
    'listener',
    unheard,
    withFault(async ({ session }) => {
      const [listener] = session.living().filter(isListener);
      process.kill(listener as number, 'SIGKILL');
      await pause(500);
      expect(session.living().filter(isListener)).toEqual([]);
    }),
  );
  cell(
    'closed',
    ended,
    withFault(async ({ session, who }) => {
      await session.end();
      await gone(who);
    }),
  );
  cell(
    'busy',
    took,
    withFault(async ({ session }) => {
      const from = office.model.requests.length;
      session.say('work for long');
      await office.model.waitFor(() => true, 10_000, from);
      await pause(400);
    }),
  );
  cell('midPrompt', unheard, async (expected) => {
    const { session, who } = await start();
    const from = office.model.requests.length;
    session.say('think for long');
    await office.model.waitFor(() => true, 10_000, from);
    const dies = async (): Promise<void> => {
      session.kill('SIGKILL');
      await session.exited;
      await gone(who);
    };
    const said = await expectCell(expected, place, who, view, { after: dies, withinMs: 3_000 });
    await session.end();
    return said;
  });
  cell(
    'router',
    took,
    withFault(({ who }) => killRouter(place, who, view)),
  );
  cell('locked', 'store_busy / store_busy / live / nothing', async (expected) => {
    const at = await start();
    const data = path.join(office.env.HOME as string, '.local/state/postbell');
    const said = await whileLocked(data, () => expectCell(expected, place, at.who, view));
    await at.session.end();
    return said;
  });
  cell(
    'companion',
    ended,
    withFault(async ({ session, who }) => {
      const server = session.living().find((pid) => wordOf(pid) === 'mcp');
      process.kill(server as number, 'SIGKILL');
      await gone(who);
    }),
  );
  cell('workspace', 'never_registered / unknown / absent / nothing', async (expected) => {
    const other = path.join(office.dir, 'other');
    const env = claudeHome({ dir: office.dir, modelUrl: office.model.url, project: other });
    const session = streamSession({ ...env, POSTBELL_RECIPIENT: 'elsewhere' }, other);
    office.atEnd(session.end);
    session.say('hello');
    await session.waitResult(1, 20_000);
    const who = { session: session.sessionId(), name: 'elsewhere' };
    const said = await expectCell(expected, place, who, view);
    await session.end();
    return said;
  });
});

describeWithClaude('truth of its listener: another id, or back again', () => {
  beforeAll(() => open());
  afterAll(() => office.end());

  cell(
    'cleared',
    took,
    withFault(async ({ session, who }) => {
      session.say('/clear');
      await until('it has another id', () => session.sessionId() !== who.session);
      await pause(1_500);
    }),
  );
  cell('resumed', took, async (expected) => {
    const first = await start();
    await first.session.end();
    await gone(first.who);
    const again = await office.stream(first.who.name, '--resume', first.who.session as string);
    await live(place, first.who);
    await pause(500);
    const said = await expectCell(expected, place, first.who, view);
    await again.end();
    return said;
  });
  cell('forked', took, async (expected) => {
    const first = await start();
    const words = ['--resume', first.who.session as string, '--fork-session'];
    const fork = await office.stream('forked', ...words);
    fork.say('hello');
    await fork.waitResult(1, 20_000);
    const said = await expectCell(expected, place, first.who, view);
    await fork.end();
    await first.session.end();
    return said;
  });
  cell(
    'compacted',
    took,
    withFault(async ({ session }) => {
      session.say('/compact');
      await session.waitResult(2, 20_000);
      await pause(500);
    }),
  );
  cell('interrupted', took, async (expected) => {
    ignores = false;
    const session = await office.tty('bob');
    const who = { session: session.startedAs as string, name: 'bob' };
    await live(place, who);
    await session.type('think for long');
    await office.model.waitFor((request) => newestOf(request).includes('think for long'), 10_000);
    await pause(700);
    await session.press('Escape');
    await pause(1_500);
    const said = await expectCell(expected, place, who, view);
    await session.end();
    return said;
  });
});

/** As the file of hooks writes it. */
const inPlugin = (file: string): string => `"\${CLAUDE_PLUGIN_ROOT}/${file}"`;

describeWithClaude('truth of its listener: broken hooks', () => {
  /** One session of a home of its own, whose plugin is changed so; its server is as it is. */
  const broken = (change: (hooks: string) => string) => async (expected: string) => {
    await open({ market: undefined });
    try {
      Object.assign(office.env, { POSTBELL_BIN: program });
      const market = marketWith(path.join(office.dir, 'market'), (hooks) => {
        const other = change(hooks);
        if (other === hooks) throw new Error('no hook was broken');
        return other;
      });
      writeFileSync(path.join(market, 'plugins/claude-code/garbage.cjs'), '\u0000}{ garbage');
      await installPlugin(office.env, market, office.project);
      return await withFault(() => {})(expected);
    } finally {
      await office.end();
    }
  };
  cell(
    'missing',
    unheard,
    broken((hooks) => hooks.replaceAll('"command": "node"', '"command": "no-such-program"')),
  );
  cell(
    'failing',
    unheard,
    broken((hooks) => hooks.replaceAll(inPlugin('launch.cjs'), '"-e", "process.exit(1)"')),
  );
  cell(
    'garbage',
    unheard,
    broken((hooks) => hooks.replaceAll(inPlugin('launch.cjs'), inPlugin('garbage.cjs'))),
  );
  cell('untrusted', unheard, async (expected) => {
    await open({ settings: { disableAllHooks: true }, market: undefined });
    try {
      Object.assign(office.env, { POSTBELL_BIN: program });
      const market = marketWith(path.join(office.dir, 'market'), (hooks) => hooks);
      await installPlugin(office.env, market, office.project);
      return await withFault(() => {})(expected);
    } finally {
      await office.end();
    }
  });
  cell('toolless', 'accepted / live / live / notice', async (expected) => {
    await open({ untrusted: true });
    try {
      return await withFault(() => {})(expected);
    } finally {
      await office.end();
    }
  });
  absent({ daemon: 'no daemon belongs to it' });
});
