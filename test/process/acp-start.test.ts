// How `postbell host acp` starts: in order, and with nothing registered where it fails.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcpHome, acpHome } from './acp-runner.ts';
import { until } from './home.ts';
import { postbell } from './postbell.ts';
import { liveCards } from './session.ts';
import { typed } from './typed.ts';

let acp: AcpHome;
beforeEach(async () => {
  acp = await acpHome();
});
afterEach(() => acp.home.end());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const events = (): string[] => acp.log().map(({ event }) => event);
const given = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(path.join(acp.home.dir, 'agent', name), 'utf8')) as Record<string, unknown>;

/** Registrations that the store ever saw. */
function connections(): number {
  const store = new BetterSqlite3(path.join(acp.home.dir, 'data', 'postbell.db'), { readonly: true });
  try {
    return store.prepare('SELECT count(*) FROM connection').pluck().get() as number;
  } finally {
    store.close();
  }
}

describe('the start of an ACP session', () => {
  it('goes in order, the mode before the registration', async () => {
    acp.configure({ mode: 'careful' });
    acp.script({ holdsMode: true });
    const running = acp.running();
    await acp.happened('session/set_mode');
    await pause(1_500);
    expect([connections(), acp.log('mode')]).toEqual([0, []]);
    acp.go();
    const { stderr } = await running;
    expect(connections()).toBe(1);
    expect(events()).toEqual(['started', 'initialize', 'session/new', 'tools', 'session/set_mode', 'mode']);
    expect(acp.log('mode')).toMatchObject([{ mode: 'careful' }]);
    expect(stderr()).toContain('"scripted-agent 1.0": it was not tried with this release');
  });

  it.each(['initialize', 'session/new', 'session/set_mode'])(
    '[HOST-202] that fails at %s registers nothing and exits 1',
    async (step) => {
      acp.configure({ mode: 'careful' });
      for (const script of [{ fail: step }, { die: step }]) {
        acp.script(script);
        const runner = acp.run();
        expect(await runner.exited).toEqual({ code: 1, signal: null });
        expect(runner.stderr()).toMatch(/^postbell: the agent [^\n]+\n$/);
        expect(connections()).toBe(0);
      }
      expect(events().filter((event) => event === step)).toHaveLength(2);
      expect(events()).not.toContain('mode');
    },
  );

  it('in a home without a router says nothing of that: the router is on its way', async () => {
    const fresh = await acpHome(true);
    try {
      const runner = fresh.run();
      await until('it is registered', () => runner.stderr().includes('gets the mail of'), 20_000);
      await liveCards(fresh.home, fresh.project, 1);
      expect(runner.stderr()).not.toContain('router_unreachable');
    } finally {
      await fresh.home.end();
    }
  });

  it('that is of another version of the protocol registers nothing and exits 1', async () => {
    acp.script({ version: 2 });
    const runner = acp.run();
    expect((await runner.exited).code).toBe(1);
    expect(runner.stderr()).toContain('another version of the protocol than 1');
    expect(events()).not.toContain('session/new');
  });

  it('[HOST-210] skips a mode that is not listed, with a line, and never logs in by itself', async () => {
    acp.configure({ mode: 'yolo' });
    for (const script of [{}, { modes: false }]) {
      acp.script(script);
      const runner = await acp.running();
      expect(runner.stderr()).toContain('postbell: the agent offers no mode "yolo"; it stays in its own\n');
      runner.child.kill('SIGTERM');
      expect((await runner.exited).code).toBe(0);
    }
    acp.script({ fail: 'session/new' });
    const runner = acp.run();
    expect((await runner.exited).code).toBe(1);
    expect(runner.stderr()).toBe(
      'postbell: the agent refused to begin: "Authentication required: log in first"\n',
    );
    expect(events()).not.toContain('authenticate');
    expect(events()).not.toContain('mode');
  });

  it('[HOST-216] declares no file system and no terminal', async () => {
    await acp.running();
    const { clientCapabilities } = given('initialize');
    const none = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
    expect(clientCapabilities).toMatchObject(none);
    expect(JSON.stringify(clientCapabilities)).not.toContain('true');
  });

  it('gives the agent its own environment, that of a session that rings nobody, and nothing of a session around it', async () => {
    const { session } = await acp.running({
      CLAUDE_CODE_SESSION_ID: 'outer',
      CLAUDE_CODE_MESSAGING_TOKEN: 'secret',
      OWN_VARIABLE: 'kept',
    });
    const [agent] = acp.log('started');
    expect(agent?.env).toEqual({ POSTBELL_SESSION: session, POSTBELL_LISTENER: 'off' });
    expect(readFileSync(`/proc/${agent?.pid}/environ`, 'utf8').split('\0')).toContain('OWN_VARIABLE=kept');
    expect(await acp.cards()).toMatchObject([{ session_id: session }]);
  });

  it('[HOST-205, HOST-275] AC6: an agent without our tools is said to be so after 10 s, and senders are told deaf', async () => {
    acp.script({ ignoresServers: true });
    const began = Date.now();
    const runner = await acp.running();
    const after = Date.now() - began;
    expect(after).toBeGreaterThan(10_000);
    expect(after).toBeLessThan(15_000);
    expect(runner.stderr()).toContain(
      'the agent has not loaded the tools of Postbell (tools_not_loaded); this session cannot be rung\n',
    );
    const letter = { project: acp.project, sender: 'a', payload: 'x', recipient: runner.session };
    const [words, input] = typed('send', { ...letter, target_kind: 'session', idempotency_key: 'k' });
    const refused = await postbell(acp.home.env, acp.home.project, words, input);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('no_bell')]);
    expect(await acp.send()).toMatchObject({ recipient_presence: 'deaf' });
    expect(await acp.cards()).toMatchObject([{ bell: 'none', bell_state: { state: 'deaf' } }]);
    await pause(1_000);
    expect(acp.log('prompt')).toEqual([]);
  });

  it.each([
    ['that is not there', () => {}, '.none', 'there is no '],
    ['that is malformed', () => writeFileSync(acp.config, '{'), '', 'is no JSON object'],
    ['of another host', () => acp.configure({ host: 'codex' }), '', 'is not one of gemini or acp'],
    ['without a command', () => acp.configure({ command: undefined }), '', 'has no command'],
  ])('refuses a config %s, and starts and registers nothing', async (_, spoil, suffix, why) => {
    spoil();
    const words = ['host', 'acp', '--config', `${acp.config}${suffix}`];
    const { code, stdout, stderr } = await postbell(
      { ...acp.home.env, AGENT_DIR: path.join(acp.home.dir, 'agent') },
      acp.home.project,
      words,
    );
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^postbell: invalid_request: [^\n]+\n$/);
    expect(stderr).toContain(why);
    // An agent that was started all the same would have said so by now: its log is where it was told.
    await pause(1_000);
    expect([acp.log(), connections()]).toEqual([[], 0]);
  });
});
