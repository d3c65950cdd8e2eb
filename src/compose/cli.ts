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
import { type Local, openLocal } from './local.ts';
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
        startRouter: () => startRouter(local),
        close: local.close,
      };
    },
    setUp: setUpHost,
    accountName,
    inHostShell: underCodex(processEnvironment),
    freshKey: () => newId({ clock: systemClock, random: systemRandom }, 'run'),
  });
}

/** One that runs is left alone. Loaded for mail to other machines only. */
async function startRouter(local: Local): Promise<void> {
  if (local.link?.relays.length === 0) return;
  const { probe } = await import('../router/lifecycle.ts');
  if ((await probe(local.places.routerSocket, local.clock)) === 'answers') return;
  const { routerStarter } = await import('./launch.ts');
  // What cannot be started is said by `router status` and doctor; the message is stored all the same.
  routerStarter(local, () => {})(true);
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
