// The truth table: `postbell host codex`, a thread of the real Codex on an app-server of its own.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { hostProgram } from '../../../tools/hosts.mjs';
import { codexRunners } from '../../process/codex-runner.ts';
import { type Home, makeHome, type Started, until } from '../../process/home.ts';
import { processesWith } from '../../process/processes.ts';
import { codexMailAgent } from '../codex-agent.ts';
import { type CodexModel, codexModelConfig, startCodexModel } from '../codex-model.ts';
import { describeWithHost } from '../installed.ts';
import { codexView } from './codex-view.ts';
import { formerRouter, killRouter, live, projectOf, whileLocked } from './faults.ts';
import { expectCell, type ModelView, type Place, type Who } from './observe.ts';
import { columnOf } from './page.ts';

let home: Home;
let model: CodexModel;
let codex: ReturnType<typeof codexRunners>;
let place: Place;
/** What the model does with a notice. */
let mood: 'reads' | 'ignores' | 'thinks' = 'reads';
let cells = 0;

const { cell, absent } = columnOf('managed');

async function open(): Promise<void> {
  home = makeHome();
  model = await startCodexModel((turn) => {
    if (mood === 'ignores') return { say: 'left alone' };
    if (mood === 'thinks') return { say: 'thought', sleepMs: 15_000 };
    return codexMailAgent(turn);
  });
  const codexHome = path.join(home.dir, 'codex');
  mkdirSync(codexHome);
  const config = [
    'sandbox_mode = "danger-full-access"',
    'approval_policy = "never"',
    codexModelConfig(model.url),
    `[projects.${JSON.stringify(home.project)}]`,
    'trust_level = "trusted"\n',
  ];
  writeFileSync(path.join(codexHome, 'config.toml'), config.join('\n'));
  const folder = path.dirname(hostProgram('codex') as string);
  Object.assign(home.env, {
    CODEX_HOME: codexHome,
    FIXTURE_API_KEY: 'none',
    PATH: `${folder}:${process.env.PATH}`,
  });
  codex = codexRunners(home);
  place = { env: home.env, cwd: home.project, project: await projectOf(home.env, home.project) };
}

async function start(name?: string): Promise<{ runner: Started; who: Who }> {
  cells += 1;
  const principal_id = name ?? `builder-${cells}`;
  codex.configure({ principal_id });
  mood = 'reads';
  const { thread, ...runner } = await codex.running();
  return { runner, who: { session: thread, name: principal_id } };
}

async function end({ child, exited }: Started, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  child.kill(signal);
  await exited;
}

const server = (): number => {
  const found = processesWith(`${home.dir}/data/runtime/codex-`);
  return found.find(({ words }) => words.includes('app-server'))?.pid as number;
};

const view: ModelView = codexView(() => model);

/** A live runner, a fault, a look, an end. */
const withFault =
  (fault: (at: Awaited<ReturnType<typeof start>>) => unknown) =>
  async (expected: string): Promise<string> => {
    const at = await start();
    await live(place, at.who);
    await fault(at);
    const said = await expectCell(expected, place, at.who, view);
    await end(at.runner);
    return said;
  };

describeWithHost('codex', 'truth of the managed runner', () => {
  beforeAll(open);
  afterAll(async () => {
    await home.end();
    await model.close();
  });

  // First: a version that was replaced once starts no router any more.
  cell('outdated', 'accepted / live / live / took it in', async (expected) => {
    const replaced = await formerRouter(place, home.dir, home.atEnd);
    const { runner, who } = await start();
    await replaced();
    await live(place, who);
    const said = await expectCell(expected, place, who, view);
    await end(runner);
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
      mood = 'ignores';
    }),
  );
  cell(
    'killed',
    'not_live / gone / absent / nothing',
    withFault(async ({ runner }) => {
      process.kill(server(), 'SIGKILL');
      await runner.exited;
    }),
  );
  cell(
    'closed',
    'not_live / gone / absent / nothing',
    withFault(({ runner }) => end(runner)),
  );
  cell('resumed', 'not_live / live / absent / took it in', async (expected) => {
    const first = await start();
    await end(first.runner);
    const again = await start(first.who.name);
    await live(place, again.who);
    const said = await expectCell(expected, place, first.who, view);
    await end(again.runner);
    return said;
  });
  cell('midPrompt', 'accepted / live / live / notice', async (expected) => {
    const { runner, who } = await start();
    await live(place, who);
    mood = 'thinks';
    const dies = async (): Promise<void> => {
      process.kill(server(), 'SIGKILL');
      await runner.exited;
      await until('it is not live', async () => (await codex.cards()).length === 0);
    };
    return expectCell(expected, place, who, view, { after: dies });
  });
  cell('busy', 'host_outcome_timeout / live / live / took it in', async (expected) => {
    const { runner, who } = await start();
    await live(place, who);
    mood = 'thinks';
    const asked = model.requests.length;
    await codex.sendExact(who.session as string, 'begins a long turn');
    await model.waitFor(() => true, 20_000, asked);
    mood = 'reads';
    const said = await expectCell(expected, place, who, view);
    await end(runner);
    return said;
  });
  cell(
    'router',
    'accepted / live / live / took it in',
    withFault(({ who }) => killRouter(place, who, view)),
  );
  cell(
    'companion',
    'not_live / gone / absent / nothing',
    withFault(async ({ runner }) => {
      const of = server();
      await end(runner, 'SIGKILL');
      // Nobody is left to end its app-server.
      try {
        process.kill(of, 'SIGKILL');
      } catch {
        // it has ended by itself
      }
    }),
  );
  cell('workspace', 'never_registered / unknown / absent / nothing', async (expected) => {
    cells += 1;
    const [name, elsewhere] = [`builder-${cells}`, path.join(home.dir, 'elsewhere')];
    mkdirSync(elsewhere);
    codex.configure({ principal_id: name, workspace: elsewhere });
    const runner = codex.run();
    const thread = () => /thread (\S+) of Codex gets the mail of/.exec(runner.stderr())?.[1];
    await until('it says its thread', () => thread() !== undefined, 30_000);
    const said = await expectCell(expected, place, { session: thread() as string, name }, view);
    await end(runner);
    return said;
  });
  cell('locked', 'store_busy / store_busy / live / nothing', async (expected) => {
    const { runner, who } = await start();
    await live(place, who);
    const data = home.env.POSTBELL_HOME as string;
    const said = await whileLocked(data, () => expectCell(expected, place, who, view));
    await end(runner);
    return said;
  });
  absent({
    missing: 'no hooks in it',
    failing: 'no hooks in it',
    garbage: 'no hooks in it',
    untrusted: 'no hooks in it',
    toolless: 'the runner brings them',
    listener: 'no listener in it',
    interrupted: 'nobody but the runner has its socket',
    daemon: 'its app-server is its own',
    cleared: 'nobody types into it',
    forked: 'nobody types into it',
    compacted: 'nobody types into it',
  });
});
