// CC14: the channel runner under the real host, offline. Whether a vendor admits a channel is not to be shown here.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { postbell, program } from '../../process/postbell.ts';
import { runClaude, ttySession } from '../claude.ts';
import { describeWithClaude } from '../installed.ts';
import { type Office, openOffice } from '../office.ts';

let office: Office;
afterEach(() => office.end());

/** Passes both ways on, and writes down each line with who said it. */
const tee = `
const { spawn } = require('node:child_process');
const { appendFileSync } = require('node:fs');
const { createInterface } = require('node:readline');
const [file, ...words] = process.argv.slice(2);
const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
const pass = (from, to, who) => createInterface({ input: from }).on('line', (line) => {
  appendFileSync(file, who + line + '\\n');
  to.write(line + '\\n');
}).on('close', () => to.end());
pass(process.stdin, child.stdin, '> ');
pass(child.stdout, process.stdout, '< ');
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => process.exit(code ?? 1));
`;

describeWithClaude('a channel', () => {
  it('[HOST-249, HOST-111] CC14: the runner refuses the newer protocol and is initialized by the older; in a terminal with the flag the host says what it makes of channels, the session is registered, and the runner ends with its host', async () => {
    office = await openOffice({ market: undefined });
    const script = path.join(office.dir, 'tee.cjs');
    const log = path.join(office.dir, 'mcp.log');
    writeFileSync(script, tee);
    writeFileSync(log, '');
    const setup = await postbell(office.env, office.project, [
      'agent',
      'setup',
      'claude',
      '--principal',
      'writer',
      '--json',
    ]);
    const { config_path, registration_command, launch_command } = JSON.parse(setup.stdout) as Record<
      string,
      string
    >;
    expect(registration_command).toBe(
      `claude mcp add --transport stdio --scope user postbell-channel -- postbell host claude --config ${config_path}`,
    );
    const runner = ['node', script, log, program, 'host', 'claude', '--config', config_path as string];
    const add = [
      'mcp',
      'add',
      '--transport',
      'stdio',
      '--scope',
      'user',
      'postbell-channel',
      '--',
      ...runner,
    ];
    expect(await runClaude(office.env, add, office.project)).toMatchObject({ code: 0 });
    const [, ...flags] = (launch_command as string).split(' ');
    const session = await ttySession(office.env, office.project, flags);
    office.atEnd(session.end);
    const screen = await session.waitForScreen(
      /WARNING: Loading development channels|channels aren.t available|not available/i,
      20_000,
    );
    if (/WARNING: Loading development channels/.test(screen)) await session.press('Enter');
    await office.reachable('writer');
    const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean);
    const said = lines.map((line) => {
      const { method, id, error, result } = JSON.parse(line.slice(2)) as Record<string, { code?: number }>;
      return [line[0], method ?? id, error?.code, result === undefined ? undefined : 'result'].filter(
        (part) => part !== undefined,
      );
    });
    const discover = said.findIndex(([, method]) => (method as unknown) === 'server/discover');
    expect(said[discover + 1]).toEqual(['<', expect.anything(), -32601]);
    expect(said.slice(discover + 2).find(([who]) => who === '>')?.[1]).toBe('initialize');
    const answer = lines.find((line) => line.startsWith('< ') && line.includes('protocolVersion')) as string;
    expect(JSON.parse(answer.slice(2)).result).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: { experimental: { 'claude/channel': {} } },
    });
    expect(answer).not.toContain('permission');
    const sent = await office.send('writer', 'over a channel');
    expect(sent.recipient_presence).toBe('live');
    await expect
      .poll(() => readFileSync(log, 'utf8').includes('notifications/claude/channel'), { timeout: 5_000 })
      .toBe(true);
    const { kinds, state } = await office.facts(sent);
    expect(kinds).toEqual(['attempt adapter_returned', 'host_accept full']);
    expect(state).toBe('notification_sent');
    const living = session.living();
    await session.end();
    await expect
      .poll(() => living.filter((pid) => session.living().includes(pid)), { timeout: 5_000 })
      .toEqual([]);
    await office.reachable('writer', 0);
  });
});
