// `postbell hook EVENT`: short-lived, started by a host. Wrong words are exit 1; whatever else happens, the host goes on:
// exit 0.

import { processEnvironment } from '../platform/environment.ts';
import { Fault } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { readPayload } from '../surfaces/hooks/input.ts';
import { sessionStart } from '../surfaces/hooks/session-start.ts';
import { note, orFail } from './failure.ts';
import { hostProcess } from './identity.ts';
import { projectOfHost } from './project.ts';
import { principalOf } from './recipient.ts';
import { openGround } from './store.ts';

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async ([event, ...surplus]) => {
    if (event !== 'session-start' || surplus.length > 0) throw new Fault('usage', 'hook takes session-start');
    await startSession();
  });
}

async function startSession(): Promise<void> {
  process.stdout.on('error', note);
  try {
    // Git runs while the store opens. A project that cannot be known is left out of the sentence.
    const project = projectOfHost(processEnvironment);
    const ground = await openGround({ lockWaitMs: limits.hookStoreWaitMs });
    try {
      const payload = await readPayload(process.stdin, ground);
      const principal = principalOf(processEnvironment, 'claude', payload.session_id ?? '');
      const host = hostProcess(processEnvironment, process.ppid);
      process.stdout.write(await sessionStart(ground, payload, host, { principal, project }));
    } finally {
      ground.store.close();
    }
  } catch (error) {
    note(error);
  }
}
