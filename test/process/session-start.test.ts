// The SessionStart hook: which session a host process runs, told by that process alone.

import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTime } from '../../src/platform/processes.ts';
import { type Home, makeHome } from './home.ts';
import { answer, postbell } from './postbell.ts';
import { liveCards, openSession } from './session.ts';

let home: Home;
let host: ChildProcess;
beforeEach(() => {
  home = makeHome();
  host = spawn('sleep', ['600']);
});
afterEach(async () => {
  host.kill();
  await home.end();
});

async function start(payload: object | string, pid = host.pid): Promise<string> {
  const env = { ...home.env, CLAUDE_PID: String(pid), CLAUDE_PROJECT_DIR: home.project };
  const input = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const { code, stdout, stderr } = await postbell(
    env,
    home.project,
    ['hook', 'session-start', '--host', 'claude'],
    input,
  );
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

/** Whether `id` may take in what is meant for `meant`: the one place that asks who a session is. */
async function isSame(id: string, meant: string): Promise<boolean> {
  const key = `${id}-${meant}`;
  const send = [
    'message',
    'send',
    '--project',
    'p',
    '--sender',
    's',
    '--recipient',
    'r',
    '--intended-session',
    meant,
    '--idempotency-key',
    key,
    '--payload-stdin',
  ];
  const { message_id } = await answer(home.env, home.project, send, 'x');
  const take = [
    'message',
    'intake',
    '--project',
    'p',
    '--recipient',
    'r',
    '--message-id',
    String(message_id),
    '--idempotency-key',
    'k',
    '--state',
    'fetched',
  ];
  const { code, stderr } = await postbell({ ...home.env, CLAUDE_CODE_SESSION_ID: id }, home.project, take);
  if (code !== 0) expect(stderr).toMatch(/^postbell: intended_for_other_session: /);
  return code === 0;
}

describe('postbell hook session-start', () => {
  it('tells the agent who it is, in one line of the host\u2019s own form', async () => {
    const { hookSpecificOutput } = JSON.parse(await start({ session_id: 's"1', source: 'startup' }));
    expect(hookSpecificOutput.hookEventName).toBe('SessionStart');
    expect(hookSpecificOutput.additionalContext).toMatch(
      /^Postbell: this session is "s\\"1"; its inbox is "claude-session-s\\"1" in project "shop~[0-9a-f]{32}"\.$/,
    );
  });

  it('[SES-049, SES-052, SES-053] links the id before a clear with the one after, and nobody else', async () => {
    await start({ session_id: 'a', source: 'startup' });
    await start({ session_id: 'b', source: 'clear' });
    await start({ session_id: 'c', source: 'clear' });
    for (const [id, meant] of [
      ['a', 'c'],
      ['c', 'a'],
      ['b', 'c'],
      ['b', 'a'],
      ['a', 'a'],
      ['c', 'c'],
    ] as const)
      expect(await isSame(id, meant)).toBe(true);
    expect(await isSame('d', 'a')).toBe(false);
    await start({ session_id: 'e', source: 'fork' });
    expect(await isSame('e', 'c')).toBe(false);
  });

  it('[HOST-051] goes by the source: of five, only a clear makes an alias of the session before', async () => {
    const sources = ['startup', 'resume', 'clear', 'compact', 'fork'] as const;
    const aliases: string[] = [];
    for (const source of sources) {
      await start({ session_id: `before-${source}`, source: 'startup' });
      await start({ session_id: `after-${source}`, source });
      if (await isSame(`after-${source}`, `before-${source}`)) aliases.push(source);
    }
    expect(aliases).toEqual(['clear']);
  });

  it('links them also where the project cannot be known, and leaves it out of its line', async () => {
    await start({ session_id: 'a', source: 'startup' });
    const env = { ...home.env, CLAUDE_PID: String(host.pid), CLAUDE_PROJECT_DIR: '/nowhere/at/all' };
    const { code, stdout } = await postbell(
      env,
      home.project,
      ['hook', 'session-start', '--host', 'claude'],
      JSON.stringify({ session_id: 'b', source: 'clear' }),
    );
    expect(code).toBe(0);
    expect(stdout).toContain('its inbox is');
    expect(stdout).not.toContain('in project');
    expect(await isSame('b', 'a')).toBe(true);
  });

  it('[SES-048] records the host process by pid and start time, with the session it runs', async () => {
    const { default: Driver } = await import('better-sqlite3');
    const rows = () => {
      const store = new Driver(`${home.env.POSTBELL_HOME}/postbell.db`, { readonly: true });
      const all = store.prepare('SELECT pid, start_time, session_id FROM launcher').all();
      store.close();
      return all;
    };
    const start_time = startTime(host.pid as number);
    // At every start; the last writer of a process counts.
    for (const source of ['startup', 'resume', 'clear', 'compact', 'fork']) {
      await start({ session_id: `of-${source}`, source });
      expect(rows()).toEqual([{ pid: host.pid, start_time, session_id: `of-${source}` }]);
    }
    await start({ session_id: 'sub', source: 'startup', agent_type: 'helper' });
    expect(rows()).toEqual([{ pid: host.pid, start_time, session_id: 'of-fork' }]);
  });

  it('[SES-050] links nothing where the process id was reused', async () => {
    await start({ session_id: 'a', source: 'startup' });
    const store = await import('better-sqlite3').then(
      ({ default: Driver }) => new Driver(`${home.env.POSTBELL_HOME}/postbell.db`),
    );
    store.prepare('UPDATE launcher SET start_time = ?').run('1');
    store.close();
    await start({ session_id: 'b', source: 'clear' });
    expect(await isSame('b', 'a')).toBe(false);
  });

  it('[SES-048] takes no notice of a sub-agent, nor of what it cannot read', async () => {
    await start({ session_id: 'a', source: 'startup' });
    expect(await start({ session_id: 'sub', source: 'startup', agent_type: 'helper' })).toBe('');
    expect(await start('not json')).toBe('');
    expect(await start({ session_id: 7 })).toBe('');
    await start({ session_id: 'b', source: 'clear' });
    expect(await isSame('b', 'a')).toBe(true);
    expect(await isSame('b', 'sub')).toBe(false);
  });

  it.each([
    ['POSTBELL_SESSION', { CLAUDE_CODE_SESSION_ID: 'own', POSTBELL_SESSION: 'pinned' }, []],
    ['--session', { CLAUDE_CODE_SESSION_ID: 'own' }, ['--session', 'pinned']],
    ['POSTBELL_SESSION beside a thread id', { CODEX_THREAD_ID: 'own', POSTBELL_SESSION: 'pinned' }, []],
  ])('[SES-022] an id pinned with %s and the host\u2019s own name one session', async (_, env, words) => {
    await openSession(home, env, words);
    const project = (await answer(home.env, home.project, ['send', 'x', '--json'], 'x')).project as string;
    expect(await liveCards(home, project, 1)).toMatchObject([{ session_id: 'pinned' }]);
    expect(await isSame('own', 'pinned')).toBe(true);
    expect(await isSame('pinned', 'own')).toBe(true);
    expect(await isSame('other', 'own')).toBe(false);
    for (const [id, code] of [
      ['own', 0],
      ['pinned', 0],
      ['other', 1],
    ] as const) {
      const update = ['message', 'send', '--project', project, '--sender', 's', '--recipient', id];
      const more = ['--target-kind', 'session', '--status', 'update', '--idempotency-key', id];
      const told = await postbell(home.env, home.project, [...update, ...more, '--payload-stdin'], 'x');
      expect([id, told.code]).toEqual([id, code]);
    }
  });
});
