// What an agent that asks for permission is answered, without a terminal and at one.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { until } from './home.ts';
import { program } from './postbell.ts';
import { openTerminal, type TestTerminal } from './terminal.ts';

let acp: AcpHome;
beforeEach(async () => {
  acp = await acpHome();
  acp.turn('ask');
});
afterEach(() => acp.home.end());

const selected = (optionId: string) => ({ outcome: 'selected', optionId });
const cancelled = { outcome: 'cancelled' };
const rejected = selected('reject_once');
const allRejected = [
  rejected,
  rejected,
  selected('cancel'),
  selected('cancel'),
  cancelled,
  cancelled,
  ...Array.from({ length: 5 }, () => rejected),
];
const outcomes = () => acp.log('permission').map(({ outcome }) => outcome);

/** The runner at a terminal, whose person has prompted its agent. */
async function atTerminal(): Promise<TestTerminal> {
  const terminal = openTerminal(acp.home, 150, 50);
  acp.home.atEnd(terminal.end);
  const agent = `AGENT_DIR=${acp.home.dir}/agent`;
  terminal.type(`${agent} ${process.execPath} ${program} host acp --config ${acp.config}`);
  await until('it is registered', () => terminal.screen().includes('gets the mail of'), 20_000);
  terminal.type('look around');
  await acp.happened('prompt');
  expect(acp.log('prompt')).toMatchObject([{ text: 'look around' }]);
  return terminal;
}

describe('[HOST-209] a permission that an ACP agent asks for', () => {
  it('[HOST-274] AC5: our own tool is allowed once, a foreign one rejected, with two sets of option ids', async () => {
    await acp.running();
    await acp.send();
    await acp.happened('stop');
    expect(outcomes()).toEqual([
      selected('allow_once'),
      selected('reject_once'),
      selected('proceed_once'),
      selected('cancel'),
      cancelled,
      cancelled,
      selected('reject_once'),
      selected('allow_once'),
      selected('reject_once'),
      selected('allow_once'),
      selected('reject_once'),
    ]);
  });

  it('is rejected whatever it is for, where the config says so', async () => {
    acp.configure({ permission: 'reject' });
    await acp.running();
    await acp.send();
    await acp.happened('stop');
    expect(outcomes()).toEqual(allRejected);
  });

  it('is rejected at a terminal, too, where the config says so, and nobody is asked', async () => {
    acp.configure({ permission: 'reject' });
    const terminal = await atTerminal();
    await acp.happened('stop');
    expect(outcomes()).toEqual(allRejected);
    expect(terminal.screen()).not.toContain('[y/N]');
    terminal.press('C-c');
    await until('it has ended', async () => (await acp.cards()).length === 0);
  });

  it('is asked of the person at a terminal, whose lines are prompts otherwise', async () => {
    const terminal = await atTerminal();
    for (const [nth, yes] of ['y', 'n', '', 'yes'].entries()) {
      await until(
        'it is asked',
        () => acp.log('permission').length === nth && /\[y\/N\]\s*$/.test(terminal.screen().trimEnd()),
      );
      terminal.type(yes);
      await acp.happened('permission', nth + 1);
    }
    expect(outcomes().slice(0, 4)).toEqual([
      selected('allow_once'),
      selected('reject_once'),
      selected('cancel'),
      selected('proceed_once'),
    ]);
    terminal.press('C-c');
    await until('it has ended', async () => (await acp.cards()).length === 0);
  });
});
