// The commands that end at once.

import { userInfo } from 'node:os';
import { type Caller, newId } from '../mailbox/desk.ts';
import { systemClock } from '../platform/clock.ts';
import { processEnvironment } from '../platform/environment.ts';
import { systemRandom } from '../platform/random.ts';
import { say } from '../platform/stderr.ts';
import { Fault } from '../protocol/errors.ts';
import { runCli } from '../surfaces/cli/run.ts';
import { failWithoutOutput } from './failure.ts';
import { hostSession, pinIgnored, pinnedSession, underCodex } from './identity.ts';
import { openLocal } from './local.ts';
import { projectOf } from './project.ts';
import { principalOf } from './recipient.ts';
import { setUpHost } from './setup.ts';

export async function main(words: readonly string[]): Promise<void> {
  failWithoutOutput(words);
  process.exitCode = await runCli({
    words,
    terminal: {
      input: process.stdin,
      // Where it cannot be written, the process ends.
      out: (text) => new Promise((resolve) => process.stdout.write(text, (error) => error ?? resolve())),
      err: say,
    },
    open: async () => {
      const unpinned = pinIgnored(processEnvironment);
      if (unpinned !== undefined) throw new Fault('invalid_request', `POSTBELL_SESSION: ${unpinned}`);
      const local = await openLocal();
      return {
        desk: local,
        caller: callerOf(),
        project: () => projectOf('.'),
        close: local.close,
      };
    },
    setUp: setUpHost,
    accountName,
    inHostShell: underCodex(processEnvironment),
    freshKey: () => newId({ clock: systemClock, random: systemRandom }, 'run'),
  });
}

/** The account's name; its number where it has none. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.()}`;
  }
}

function callerOf(): Caller {
  const named = hostSession(processEnvironment);
  const id = named?.id ?? pinnedSession(processEnvironment);
  const session =
    id === undefined
      ? {}
      : {
          session: id,
          principal: principalOf(processEnvironment, named?.host ?? 'other', id, {
            workspace: process.cwd(),
          }),
        };
  return { transport: 'cli', source_host: 'cli', ...session };
}
