// A real agent that has our plugin inside it and is rung by `postbell host acp`: the plugin is that session, and rings nobody.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { hostNode, hostProgram } from '../../../tools/hosts.mjs';
import { type Started, start, until } from '../../process/home.ts';
import { answer, type Env } from '../../process/postbell.ts';
import { environmentOf, wordsOf } from '../../process/processes.ts';
import { watchFamily } from '../family.ts';
import { describeWithHost } from '../installed.ts';
import type { Script, ToolResult } from '../model.ts';
import { isListener, isPlugin, noticesIn, type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

const tool = (name: string): string => `mcp__plugin_postbell_postbell__${name}`;

/** It reads by the plugin's tools, not by those of the server that the runner gave to the agent. */
function readsByPlugin(told: ToolResult[]): Script {
  return ({ newest, toolResults }) => {
    told.push(...toolResults);
    const received = toolResults.find(({ name }) => name === tool('receive_messages'));
    if (received !== undefined) {
      const { messages } = JSON.parse(received.text) as { messages: { receipt: object }[] };
      const receipts = messages.map(({ receipt }) => receipt);
      return { tools: [{ name: tool('acknowledge_messages'), input: { messages: receipts } }] };
    }
    if (toolResults.length > 0 || noticesIn(newest) === 0) return undefined;
    return {
      tools: ['get_my_session_id', 'receive_messages'].map((name) => ({ name: tool(name), input: {} })),
    };
  };
}

/** As the agent starts it, on this config. */
async function running(config: string, env: Env): Promise<{ runner: Started; session: string }> {
  const runner = start(['host', 'acp', '--config', config], env, office.project);
  office.atEnd(async () => {
    runner.child.kill('SIGTERM');
    await runner.exited;
  });
  const said = /session (\w+) of .* gets the mail/;
  await until('it is ready', () => said.test(runner.stderr()) || runner.child.exitCode !== null, 60_000);
  const session = said.exec(runner.stderr())?.[1];
  if (session === undefined) throw new Error(runner.stderr());
  return { runner, session };
}

describeWithHost('claude-agent-acp', 'an ACP agent with the plugin', () => {
  it('[HOST-204] is one session, which is rung once, and as which the plugin reads', async () => {
    const told: ToolResult[] = [];
    office = await openOffice({ script: readsByPlugin(told) });
    const { env, project } = office;
    const hosts = path.join(env.HOME as string, '.local', 'state', 'postbell', 'hosts');
    mkdirSync(hosts, { recursive: true, mode: 0o700 });
    const file = path.join(hosts, 'acp.json');
    const command = [hostNode('claude-agent-acp'), hostProgram('claude-agent-acp') as string];
    const base = { version: 1, host: 'acp', principal_id: 'builder', workspace: project };
    writeFileSync(file, JSON.stringify({ ...base, command, mode: 'default' }), { mode: 0o600 });
    // Root may run the agent's Claude Code only so.
    const { runner, session } = await running(file, { ...env, IS_SANDBOX: '1' });
    const projectId = await office.reachable('builder');
    const cards = async (): Promise<unknown> =>
      (await answer(env, project, ['message', 'discover', '--project', projectId, '--detail'])).cards;
    const family = watchFamily(runner.pid);
    const pluginRuns = (): boolean => family.living().some((pid) => isPlugin(pid, 'mcp'));
    await until('the plugin runs', pluginRuns);
    // The shell that watches over the agent's group is the runner's own.
    const watches = (pid: number): boolean => wordsOf(pid).at(-2) === 'sh';
    const theirs = family.living().filter((pid) => pid !== runner.pid && !watches(pid));
    expect(theirs.map(environmentOf)).toEqual(
      theirs.map(() => expect.arrayContaining([`POSTBELL_SESSION=${session}`, 'POSTBELL_LISTENER=off'])),
    );
    const sent = await office.sendExact(session, 'SENTINEL');
    expect(sent.native_delivery).toMatchObject({ status: 'native_accepted', adapter_kind: 'acp' });
    const kinds = async (): Promise<string[]> => (await office.facts(sent)).kinds;
    await until('it is acknowledged', async () => (await kinds()).includes('ack acknowledged'), 60_000);
    // Time for a second ring, of a listener or of the gate, to come.
    await pause(3_000);
    expect(await kinds()).toEqual([
      'attempt adapter_returned',
      'host_accept notice',
      'intake ingested',
      'ack acknowledged',
    ]);
    const who = told.find(({ name }) => name === tool('get_my_session_id'));
    const me = JSON.parse(who?.text ?? '{}') as { session_id: string; aliases: string[] };
    expect([me.session_id, ...me.aliases]).toContain(session);
    const turns = office.turns(me.session_id).map((turn) => office.model.text(turn));
    expect(turns.at(-1)).toContain('SENTINEL');
    expect(new Set(turns.map(noticesIn))).toEqual(new Set([1]));
    expect(await cards()).toMatchObject([{ session_id: session, principal_id: 'builder', bell: 'acp' }]);
    expect(office.records().map(({ hook }) => hook)).toEqual(['session-start', 'prompt', 'stop-gate']);
    expect(pluginRuns()).toBe(true);
    expect(family.living().filter(isListener)).toEqual([]);
    runner.child.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(await family.end(2_000)).toEqual([]);
    expect(await cards()).toEqual([]);
  });
});
