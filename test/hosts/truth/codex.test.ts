// The truth table: threads of the real Codex in terminals, rung by its queue.

import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { until } from '../../process/home.ts';
import { root } from '../../process/postbell.ts';
import { companionsOf } from '../../process/processes.ts';
import { type CodexOffice, codexBinary, openCodexOffice } from '../codex.ts';
import { codexMailAgent } from '../codex-agent.ts';
import type { CodexScript } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';
import { openTerminal, type Terminal } from '../terminal.ts';
import { codexView } from './codex-view.ts';
import { formerRouter, killRouter, live, projectOf, whileLocked } from './faults.ts';
import { expectCell, type Place, type Who } from './observe.ts';
import { columnOf } from './page.ts';

let office: CodexOffice;
let place: Place;
/** The model leaves notices alone. */
let ignores = false;

const script: CodexScript = (turn) => {
  const asked = turn.outputs.length === 0 ? /^sleep (\d+)$/m.exec(turn.newest) : null;
  const told = turn.newest.includes('[Postbell inbox notice]');
  if (asked !== null && !told) return { say: 'slept', sleepMs: Number(asked[1]) };
  return ignores ? { say: 'left alone' } : codexMailAgent(turn);
};
const view = codexView(() => office.model);
const data = (): string => path.join(office.env.HOME as string, '.local/state/postbell');

async function open(options: Parameters<typeof openCodexOffice>[0] = {}): Promise<void> {
  office = await openCodexOffice({ script, ...options });
  place = { env: office.env, cwd: office.project, project: await projectOf(office.env, office.project) };
}

interface At {
  who: Who;
  thread: string;
  terminal: Terminal;
}

async function start(): Promise<At> {
  ignores = false;
  const { thread, terminal } = await office.open();
  const who = { session: thread, name: `codex-thread-${thread}` };
  await live(place, who);
  return { who, thread, terminal };
}

/** A live thread, a fault, a look, an end. */
const withFault =
  (fault: (at: At) => unknown, more: Parameters<typeof expectCell>[4] = {}) =>
  async (expected: string): Promise<string> => {
    const at = await start();
    await fault(at);
    const said = await expectCell(expected, place, at.who, view, more);
    await at.terminal.end();
    return said;
  };

async function inTurn({ thread, terminal }: At, ms: number): Promise<void> {
  const from = office.model.requests.length;
  await terminal.type(`sleep ${ms}`);
  await office.model.waitFor((request) => request.thread === thread && !request.answered, 10_000, from);
}

async function another(
  words: string[],
  folder = office.project,
  shown = /Ask Codex to do anything/,
): Promise<Terminal> {
  const terminal = await openTerminal(office.env, folder, [codexBinary(), ...words]);
  office.atEnd(terminal.end);
  await terminal.waitForScreen(shown, 30_000);
  return terminal;
}

const { cell, absent } = columnOf('queue');

describeWithHost('codex', 'truth of its queue: threads on a shared app-server', () => {
  beforeAll(() => open());
  afterAll(() => office.end());

  // First: a version that was replaced once starts no router any more.
  cell('outdated', 'accepted / live / live / took it in', async (expected) => {
    const replaced = await formerRouter(place, office.dir, office.atEnd);
    await office.serve();
    const at = await start();
    await replaced();
    await live(place, at.who);
    const said = await expectCell(expected, place, at.who, view);
    await at.terminal.end();
    return said;
  });
  cell(
    'none',
    'accepted / live / live / took it in',
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
    'interrupted',
    'accepted / live / live / took it in',
    withFault(
      async (at) => {
        await inTurn(at, 60_000);
        await pause(500);
        await at.terminal.press('Escape');
        await at.terminal.waitForScreen(/interrupted/i, 10_000);
      },
      // The router asks for its release after 20 s.
      { withinMs: 45_000 },
    ),
    90_000,
  );
  cell(
    'busy',
    'accepted / live / live / took it in',
    withFault((at) => inTurn(at, 6_000)),
  );
  cell(
    'compacted',
    'accepted / live / live / took it in',
    withFault(async ({ terminal }) => {
      await terminal.type('/compact');
      await terminal.waitForScreen(/compacted/i, 20_000);
    }),
  );
  cell(
    'cleared',
    'accepted / live / live / took it in',
    withFault(async ({ terminal, thread }) => {
      await terminal.type('/clear');
      await pause(1_500);
      const from = office.model.requests.length;
      await terminal.type('hello after it');
      const next = await office.model.waitFor(
        (request) => !request.side && office.model.text(request).includes('hello after it'),
        20_000,
        from,
      );
      expect(next.thread).not.toBe(thread);
    }),
  );
  cell(
    'forked',
    'accepted / live / live / took it in',
    withFault(async ({ thread }) => {
      const fork = await another(['fork', thread]);
      await fork.type('hello in the fork');
      await fork.waitForScreen(/ready|nothing waits/, 20_000);
    }),
  );
  cell(
    'router',
    'accepted / live / live / took it in',
    withFault(({ who }) => killRouter(place, who, view)),
  );
  cell('locked', 'store_busy / store_busy / live / nothing', async (expected) => {
    const at = await start();
    const said = await whileLocked(data(), () => expectCell(expected, place, at.who, view));
    await at.terminal.end();
    return said;
  });
  cell(
    'companion',
    'not_live / gone / absent / nothing',
    withFault(async ({ who }) => {
      for (const { pid } of companionsOf(office.dir)) process.kill(pid, 'SIGKILL');
      await until('it is not live', async () => (await office.card(who.session as string)) === undefined);
    }),
  );
});

describeWithHost('codex', 'truth of its queue: terminals alone', () => {
  let quit: { who: Who; at: number; thread: string };
  beforeAll(() => open());
  afterAll(() => office.end());

  cell('daemon', 'accepted / live / live / took it in', async (expected) => {
    const at = await start();
    const said = await expectCell(expected, place, at.who, view);
    await at.terminal.type('/quit');
    quit = { who: at.who, at: Date.now(), thread: at.thread };
    return said;
  });
  cell(
    'killed',
    'not_live / gone / absent / nothing',
    withFault(async ({ who, terminal }) => {
      process.kill(terminal.pid, 'SIGKILL');
      await until(
        'it is not live',
        async () => (await office.card(who.session as string)) === undefined,
        15_000,
      );
    }),
  );
  cell('midPrompt', 'accepted / live / live / nothing', async (expected) => {
    const at = await start();
    await inTurn(at, 60_000);
    const dies = async (): Promise<void> => {
      process.kill(at.terminal.pid, 'SIGKILL');
      await until('it is not live', async () => (await office.card(at.thread)) === undefined, 15_000);
    };
    const said = await expectCell(expected, place, at.who, view, { after: dies });
    await at.terminal.end();
    return said;
  });
  cell('workspace', 'never_registered / unknown / absent / nothing', async (expected) => {
    const other = office.directory('other');
    const terminal = await another([], other);
    const from = office.model.requests.length;
    await terminal.type('hello from elsewhere');
    const { thread } = await office.model.waitFor(({ side }) => !side, 20_000, from);
    await until('it is live there', async () => (await office.cards(other)).length > 0, 20_000);
    const said = await expectCell(expected, place, { session: thread, name: `codex-thread-${thread}` }, view);
    await terminal.end();
    return said;
  });
  cell('closed', 'not_live / gone / absent / nothing', async (expected) => {
    await pause(Math.max(0, quit.at + 48_000 - Date.now()));
    const who = { ...quit.who, deadMs: Date.now() - quit.at };
    return expectCell(expected, place, who, view);
  });
  cell('resumed', 'accepted / live / live / took it in', async (expected) => {
    const terminal = await another(['resume', quit.thread]);
    await terminal.type('hello again');
    await live(place, quit.who);
    await terminal.waitForScreen(/hello again[\s\S]*(ready|done|mail handled)/, 20_000);
    const said = await expectCell(expected, place, quit.who, view);
    await terminal.end();
    return said;
  });
});

/** As the file of hooks writes it. */
const inPlugin = (file: string): string => `\\"\${PLUGIN_ROOT}/${file}\\"`;

/** The plugin as it is, but what runs its hooks is broken; its tools are as they are. */
function brokenMarket(dir: string, command: string): string {
  const market = path.join(dir, 'market');
  for (const part of ['.agents', 'plugins'])
    cpSync(path.join(root, part), path.join(market, part), { recursive: true });
  for (const part of ['dist', 'node_modules']) symlinkSync(path.join(root, part), path.join(market, part));
  const plugin = path.join(market, 'plugins/codex');
  writeFileSync(path.join(plugin, 'garbage.cjs'), '\u0000}{ garbage');
  const hooks = path.join(plugin, 'hooks/hooks.json');
  const whole = readFileSync(hooks, 'utf8');
  const broken = whole.replaceAll(`node ${inPlugin('launch.cjs')}`, command);
  if (broken === whole) throw new Error('no hook was broken');
  writeFileSync(hooks, broken);
  return market;
}

describeWithHost('codex', 'truth of its queue: broken hooks', () => {
  /** One thread of a home of its own, whose hooks are broken so. */
  const broken = (command: string) => async (expected: string) => {
    await open({ plugin: 'none' });
    try {
      const market = brokenMarket(office.dir, command);
      for (const words of [
        ['plugin', 'marketplace', 'add', market],
        ['plugin', 'add', 'postbell@postbell'],
      ])
        expect(await office.codex(words)).toMatchObject({ code: 0 });
      await office.trust();
      const { thread, terminal } = await office.open();
      const who = { session: thread, name: `codex-thread-${thread}` };
      // No companion was started: the server of its tools rings it in its place.
      await live(place, who);
      const said = await expectCell(expected, place, who, view);
      await terminal.end();
      return said;
    } finally {
      await office.end();
    }
  };
  cell('missing', 'accepted / live / live / took it in', broken('no-such-program'));
  cell('failing', 'accepted / live / live / took it in', broken("node -e 'process.exit(1)'"));
  cell('garbage', 'accepted / live / live / took it in', broken(`node ${inPlugin('garbage.cjs')}`));
  cell('untrusted', 'never_registered / unknown / absent / nothing', async (expected) => {
    await open({ plugin: 'untrusted' });
    try {
      const terminal = await another([], office.project, /Hooks need review/);
      await terminal.keys('3');
      await pause(500);
      await terminal.press('Enter');
      await terminal.waitForScreen(/Ask Codex to do anything/, 20_000);
      await terminal.type('hello untrusted');
      const { thread } = await office.model.waitFor(({ side }) => !side, 20_000);
      const who = { session: thread, name: `codex-thread-${thread}` };
      const said = await expectCell(expected, place, who, view);
      await terminal.end();
      return said;
    } finally {
      await office.end();
    }
  });
  absent({
    toolless: 'its tools ask for no approval',
    listener: 'no listener in it',
  });
});
