// Mail for one exact Codex thread that cannot be rung: nothing is started for it, and nothing takes its place.

import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CompanionRecord } from '../../src/protocol/companion.ts';
import { type FakeCodex, fakeCodex } from './codex.ts';
import { type Home, makeHome, until } from './home.ts';
import { answer, postbell, program } from './postbell.ts';
import { companionsOf, processesOf } from './processes.ts';
import { liveCards } from './session.ts';

const [target, other] = ['01a2359b-9716-7d71-8e13-ff19cf36a487', '01a2359b-9716-7d71-8e13-ff19cf36a488'];

let home: Home;
let codex: FakeCodex;
let project: string;
beforeEach(async () => {
  home = makeHome();
  codex = fakeCodex(home.dir);
  project = (await answer(home.env, home.project, ['send', 'nobody', '--json'], 'x')).project as string;
  await thread(other);
});
afterEach(() => home.end());

/** In the place of a Codex whose thread begins: it runs the plugin's hook, and stays. */
async function thread(session_id: string): Promise<ChildProcess> {
  const already = (await cards()).length;
  const payload = { session_id, cwd: home.project, hook_event_name: 'SessionStart', source: 'startup' };
  const words = [program, 'hook', 'codex-session', '--host', 'codex'];
  const input = JSON.stringify({ ...payload, transcript_path: '/t' });
  const script = `require('child_process').spawnSync(process.execPath,${JSON.stringify(words)},{input:${JSON.stringify(input)}});setInterval(()=>{},1e6)`;
  const env = { ...home.env, PLUGIN_ROOT: '/plugin', PATH: `${codex.bin}:${home.env.PATH}` };
  const host = spawn(process.execPath, ['-e', script], { env, cwd: home.project, stdio: 'ignore' });
  home.atEnd(() => host.kill('SIGKILL'));
  await liveCards(home, project, already + 1);
  await until('its record says so', () => recordOf(session_id)?.state === 'registered');
  return host;
}

function recordOf(session_id: string): CompanionRecord | undefined {
  const runtime = path.join(home.env.POSTBELL_HOME as string, 'runtime');
  return readdirSync(runtime)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(path.join(runtime, name), 'utf8')) as CompanionRecord)
    .find((one) => one.thread === session_id);
}

async function cards(): Promise<unknown[]> {
  const words = ['message', 'discover', '--project', project];
  return (await answer(home.env, home.project, words).catch(() => ({ cards: [] }))).cards as unknown[];
}

async function refusal(words: string[] = [], of = project): Promise<string> {
  const scope = ['message', 'send', '--project', of, '--sender', 'me', '--recipient', target];
  const more = ['--target-kind', 'session', '--idempotency-key', 'k', '--payload-stdin', ...words];
  const { code, stderr } = await postbell(home.env, home.project, [...scope, ...more], 'hello');
  expect(code).toBe(1);
  return stderr;
}

/** Every process of this account's home, and who is registered as what. */
const running = async () => ({
  processes: processesOf(home.dir).map(({ pid, words }) => [pid, words.join(' ')]),
  // A heartbeat renews a lease.
  cards: (await cards()).map((card) => ({ ...(card as object), lease_expires_at_ms: 0 })),
});

const companion = (session_id: string): number => recordOf(session_id)?.pid as number;
const companions = (): number[] => companionsOf(home.dir).map(({ pid }) => pid);

describe('[HOST-158] neither started nor replaced is a thread', () => {
  const cases: {
    what: string;
    reason: RegExp;
    begin?: () => Promise<unknown>;
    words?: string[];
    of?: string;
    ringable?: boolean;
  }[] = [
    {
      what: 'whose Codex has stopped',
      reason: /not_live/,
      begin: async () => {
        const host = await thread(target);
        host.kill('SIGKILL');
        await until('its companion has ended, too', () => companions().length === 1, 15_000);
        await liveCards(home, project, 1);
      },
    },
    { what: 'that never was', reason: /never_registered/ },
    {
      what: 'whose companion is disconnected, though its Codex runs',
      reason: /not_live/,
      begin: async () => {
        await thread(target);
        process.kill(companion(target), 'SIGKILL');
        await liveCards(home, project, 1);
      },
    },
    {
      what: 'that is live as another generation than was meant',
      reason: /generation_changed/,
      begin: () => thread(target),
      words: ['--expected-generation', '7'],
      ringable: true,
    },
    {
      what: 'that is live in another project than was meant',
      reason: /never_registered/,
      begin: () => thread(target),
      of: 'elsewhere',
    },
  ];
  for (const { what, reason, begin, words, of, ringable = false } of cases)
    it(what, async () => {
      await begin?.();
      const before = await running();
      expect(before.processes).toContainEqual([companion(other), expect.stringContaining('companion')]);
      expect(await refusal(words, of)).toMatch(reason);
      expect(await refusal(words, of)).toMatch(reason);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      expect(await running()).toEqual(before);
      // A live thread is rung for what is kept for it, and that is all that Codex is asked.
      const asked = codex.starts().map(({ argv = [] }) => [argv.slice(0, 3), argv.includes('--resume')]);
      expect(asked).toEqual(ringable ? [[['queue', '--thread', target], false]] : []);
    });
});
