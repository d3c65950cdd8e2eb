// `postbell hook EVENT`: short-lived, started by a host. Wrong words are exit 1; whatever else happens, the host goes on:
// exit 0.

import { processEnvironment, setting } from '../platform/environment.ts';
import { describeError, Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { readPayload } from '../surfaces/hooks/input.ts';
import { sessionStart } from '../surfaces/hooks/session-start.ts';
import { orFail } from './failure.ts';
import { hostProcess, principalOf } from './identity.ts';
import { projectOf } from './project.ts';
import { openGround } from './store.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async ([event, ...surplus]) => {
    if (event !== 'session-start' || surplus.length > 0) throw new Fault('usage', 'hook takes session-start');
    await startSession();
  });
}

async function startSession(): Promise<void> {
  try {
    // Git runs while the store opens; what it fails with is thrown where it is awaited.
    const project = projectOf(setting(processEnvironment, 'CLAUDE_PROJECT_DIR') ?? process.cwd());
    project.catch(() => {});
    const ground = await openGround({ lockWaitMs: limits.hookStoreWaitMs });
    try {
      const payload = await readPayload(process.stdin);
      const identity = {
        principal: principalOf(processEnvironment, 'claude', payload.session_id ?? ''),
        project: await project,
      };
      process.stdout.write(
        await sessionStart(ground, payload, hostProcess(processEnvironment, process.ppid), identity),
      );
    } finally {
      ground.store.close();
    }
  } catch (error) {
    process.stderr.write(`postbell: ${describeError(error).code}\n`);
  }
}
