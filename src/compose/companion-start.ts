// From the hook of a Codex thread to its companion: started detached, told what it is for over a pipe, and heard for a moment.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { systemClock } from '../platform/clock.ts';
import { ownEnvironment, processEnvironment, setting } from '../platform/environment.ts';
import { isPlace } from '../platform/look.ts';
import { placesOf } from '../platform/paths.ts';
import { type CompanionTask, readCompanionAnswer } from '../protocol/companion.ts';
import type { CodexSession, CompanionPort } from '../surfaces/hooks/codex-session.ts';
import type { HookPayload } from '../surfaces/hooks/input.ts';
import { codexHost } from './codex-host.ts';
import { codexHome, sqliteHome } from './codex-place.ts';
import { Companions } from './companions.ts';

/** The hook holds up the first turn: what takes longer goes on without it, and says in the log how it went. */
const heardMs = 1_600;

/** What the hook knows of its own situation. */
export const codexSituation = (payload: HookPayload): CodexSession => ({
  payload,
  packaged: setting(processEnvironment, 'PLUGIN_ROOT') !== undefined,
  silent: setting(processEnvironment, 'POSTBELL_LISTENER') === 'off' || process.platform === 'win32',
  isPlace,
});

export const companionOf = ({ ephemeral }: HookPayload): CompanionPort => ({
  start: (thread, workspace) => start(taskOf(thread, workspace, ephemeral)),
  end: (thread, workspace) => new Companions(placesOf(processEnvironment), thread).tellEnd(workspace),
});

function taskOf(thread: string, workspace: string, ephemeral: boolean): CompanionTask {
  const host = codexHost();
  const home = codexHome(processEnvironment);
  return {
    thread,
    workspace,
    ...(host !== undefined && { host: host.process }),
    program: host?.file ?? 'codex',
    ...(home !== undefined && { home }),
    shared: host?.isShared ?? false,
    ...(ephemeral ? { deaf: 'ephemeral' as const } : host?.isExec ? { deaf: 'exec' as const } : {}),
  };
}

/** By absolute paths: it runs elsewhere, and must find this very store. */
function companionEnvironment(): Record<string, string> {
  const sqlite = setting(processEnvironment, sqliteHome);
  return {
    ...ownEnvironment(processEnvironment),
    POSTBELL_DB: placesOf(processEnvironment).database,
    ...(sqlite !== undefined && { [sqliteHome]: path.resolve(sqlite) }),
  };
}

function start(task: CompanionTask): Promise<string | undefined> {
  const entry = path.join(__dirname, 'postbell.cjs');
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [entry, 'companion'], {
      cwd: '/',
      detached: true,
      env: companionEnvironment(),
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let text = '';
    const settle = (why: string | undefined): void => {
      cancel();
      child.stdout.destroy();
      child.unref();
      resolve(why);
    };
    const cancel = systemClock.after(heardMs, () => settle(undefined));
    child.on('error', () => settle('internal_error: the companion cannot be started'));
    child.on('close', () => settle('internal_error: the companion ended at once'));
    child.stdin.on('error', () => {});
    child.stdin.end(`${JSON.stringify(task)}\n`);
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (!text.includes('\n')) return;
      const answer = readCompanionAnswer(text.slice(0, text.indexOf('\n')));
      settle(answer !== undefined && 'failed' in answer ? answer.failed : undefined);
    });
  });
}
