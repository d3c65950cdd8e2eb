// `postbell hook EVENT`: short-lived, started by a host. Whatever happens, the host goes on: exit 0.

import { processEnvironment, setting } from '../platform/environment.ts';
import { describeError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { readPayload } from '../surfaces/hooks/input.ts';
import { sessionStart } from '../surfaces/hooks/session-start.ts';
import { hostProcess, principalOf } from './identity.ts';
import { projectOf } from './project.ts';
import { openGround } from './store.ts';

export async function main(words: readonly string[]): Promise<void> {
  const [event] = words;
  if (event !== 'session-start') {
    process.stderr.write('postbell: usage: hook session-start (see --help)\n');
    process.exitCode = 1;
    return;
  }
  try {
    // Git runs while the store opens; what it fails with is thrown where it is awaited.
    const project = projectOf(setting(processEnvironment, 'CLAUDE_PROJECT_DIR') ?? process.cwd());
    project.catch(() => {});
    const ground = await openGround({ lockWaitMs: limits.hookStoreWaitMs });
    try {
      const payload = await readPayload(process.stdin);
      const pid = Number(setting(processEnvironment, 'CLAUDE_PID') ?? process.ppid);
      const identity = {
        principal: principalOf(processEnvironment, 'claude', payload.session_id ?? ''),
        project: await project,
      };
      process.stdout.write(await sessionStart(ground, payload, hostProcess(pid), identity));
    } finally {
      ground.store.close();
    }
  } catch (error) {
    process.stderr.write(`postbell: ${describeError(error).code}\n`);
  }
}
