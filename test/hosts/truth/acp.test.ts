// The truth table: the ACP runner over the scripted agent.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { type AcpHome, acpHome } from '../../process/acp-runner.ts';
import { type Started, until } from '../../process/home.ts';
import { formerRouter, killRouter, live, whileLocked } from './faults.ts';
import { expectCell, type ModelView, type Place, type Who } from './observe.ts';
import { columnOf } from './page.ts';

let acp: AcpHome;
let place: Place;
beforeAll(async () => {
  acp = await acpHome();
  place = { env: acp.home.env, cwd: acp.home.project, project: acp.project };
});
afterAll(() => acp.home.end());

const model: ModelView = {
  mark: () => acp.log().length,
  since: (mark) => {
    const fresh = acp.log().slice(mark);
    const told = fresh.filter(({ event }) => event === 'prompt').map(({ text }) => String(text));
    const calls = fresh.filter(({ event }) => event === 'tool');
    return {
      told: told.join('\n'),
      all: JSON.stringify(fresh),
      calls: calls.map(({ name, input }) => `${String(name)} ${JSON.stringify(input)}`),
    };
  },
};

let cells = 0;
/** A runner under a name that no other cell has. */
async function start(
  turn = 'read',
  over: object = {},
): Promise<{ runner: Started; who: Who; agent: number }> {
  cells += 1;
  const name = `builder-${cells}`;
  acp.configure({ principal_id: name, ...over });
  acp.turn(turn);
  const before = acp.log('started').length;
  const runner = acp.run();
  const said = /session (\w+) of .* gets the mail/;
  await until('it is registered', () => said.test(runner.stderr()), 20_000);
  const session = said.exec(runner.stderr())?.[1] as string;
  const agent = acp.log('started')[before]?.pid as number;
  return { runner, who: { session, name }, agent };
}

async function end({ child, exited }: Started, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  child.kill(signal);
  await exited;
}

/** A live runner, a fault, a look, an end. */
const withFault =
  (fault: (at: Awaited<ReturnType<typeof start>>) => unknown, turn = 'read') =>
  async (expected: string): Promise<string> => {
    const at = await start(turn);
    await live(place, at.who);
    await fault(at);
    const said = await expectCell(expected, place, at.who, model);
    await end(at.runner);
    return said;
  };

const { cell, absent } = columnOf('acp');

describe('acp-sdk 2.4.0: truth table of a scripted agent', () => {
  // First: a version that was replaced once starts no router any more.
  cell('outdated', 'accepted / live / live / took it in', async (expected) => {
    const replaced = await formerRouter(place, acp.home.dir, acp.home.atEnd);
    const { runner, who } = await start();
    await replaced();
    await live(place, who);
    const said = await expectCell(expected, place, who, model);
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
    withFault(() => {}, 'print'),
  );
  cell(
    'killed',
    'not_live / gone / absent / nothing',
    withFault(async ({ runner, agent }) => {
      process.kill(agent, 'SIGKILL');
      await runner.exited;
    }),
  );
  cell('toolless', 'no_bell / deaf / deaf / nothing', async (expected) => {
    acp.script({ ignoresServers: true });
    const { runner, who } = await start();
    await live(place, who, 'deaf');
    const said = await expectCell(expected, place, who, model);
    await end(runner);
    acp.script({});
    return said;
  });
  cell(
    'interrupted',
    'accepted / live / live / took it in',
    withFault(async ({ who }) => {
      acp.turn('cancelled');
      const stops = acp.log('stop').length;
      await acp.toSession(who.session as string);
      await acp.happened('stop', stops + 1);
      acp.turn('read');
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
    const again = await start('read', { principal_id: first.who.name });
    await live(place, again.who);
    const said = await expectCell(expected, place, first.who, model);
    await end(again.runner);
    return said;
  });
  cell('busy', 'host_outcome_timeout / live / live / took it in', async (expected) => {
    const { runner, who } = await start('hold');
    await live(place, who);
    const prompts = acp.log('prompt').length;
    await acp.toSession(who.session as string);
    await acp.happened('prompt', prompts + 1);
    const goes = (): void => {
      acp.turn('read');
      acp.go();
    };
    const said = await expectCell(expected, place, who, model, { after: goes });
    await end(runner);
    return said;
  });
  cell(
    'midPrompt',
    'adapter_disconnected / gone / absent / notice',
    withFault(() => {}, 'die'),
  );
  cell(
    'router',
    'accepted / live / live / took it in',
    withFault(({ who }) => killRouter(place, who, model)),
  );
  cell(
    'companion',
    'not_live / gone / absent / nothing',
    withFault(({ runner }) => end(runner, 'SIGKILL')),
  );
  cell('workspace', 'never_registered / unknown / absent / nothing', async (expected) => {
    const elsewhere = path.join(acp.home.dir, 'elsewhere');
    mkdirSync(elsewhere);
    const { runner, who } = await start('read', { workspace: elsewhere });
    const said = await expectCell(expected, place, who, model);
    await end(runner);
    return said;
  });
  cell('locked', 'store_busy / store_busy / live / nothing', async (expected) => {
    const { runner, who } = await start();
    await live(place, who);
    const data = acp.home.env.POSTBELL_HOME as string;
    const said = await whileLocked(data, () => expectCell(expected, place, who, model));
    await end(runner);
    return said;
  });
  absent({
    missing: 'no hooks in it',
    failing: 'no hooks in it',
    garbage: 'no hooks in it',
    untrusted: 'no hooks in it',
    listener: 'no listener in it',
    daemon: 'no daemon belongs to it',
    cleared: 'nobody types into it',
    forked: 'nobody types into it',
    compacted: 'nobody types into it',
  });
});
