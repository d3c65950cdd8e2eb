// `postbell identity` and `postbell peer`: a bundle of their own, since they need the cryptography that no other command does.

import { createIdentity, showIdentity } from '../peers/identity.ts';
import { pairingCalls } from '../peers/pairing/calls.ts';
import { identityFile } from '../platform/account.ts';
import { type Environment, processEnvironment } from '../platform/environment.ts';
import { keyFile } from '../platform/paths.ts';
import { systemRandom } from '../platform/random.ts';
import { say } from '../platform/stderr.ts';
import { Fault, failureLine, isRefusal, type Result } from '../protocol/errors.ts';
import { inertJson } from '../protocol/untrusted.ts';
import { identityCommand } from '../surfaces/cli/identity.ts';
import { type PeerGround, peerCommand } from '../surfaces/cli/peer.ts';
import { waitForRequest } from '../surfaces/cli/peer-wait.ts';
import type { Terminal } from '../surfaces/cli/run.ts';
import { endingSignals } from './ending.ts';
import { failWithoutOutput, note } from './failure.ts';
import { hostSession, pinnedSession } from './identity.ts';
import { routerStarter } from './launch.ts';
import { pairingGround } from './pairing.ts';
import { type Ground, openGround } from './store.ts';

const terminal: Terminal = {
  input: process.stdin,
  // Where it cannot be written, the process ends.
  out: (text) => new Promise((resolve) => process.stdout.write(text, (error) => error ?? resolve())),
  err: say,
};

/** @param words all of them: `peer` or `identity` first */
export async function main(words: readonly string[]): Promise<void> {
  failWithoutOutput(words);
  let opened: Ground | undefined;
  const open = async (): Promise<Ground> => (opened ??= await openGround());
  try {
    const answer = await perform(words, open);
    if (isRefusal(answer)) return fail(answer, words);
    await terminal.out(`${typeof answer === 'string' ? answer : inertJson(answer)}\n`);
  } catch (error) {
    fail(error, words);
  } finally {
    opened?.store.close();
  }
}

function fail(error: unknown, words: readonly string[]): void {
  say(failureLine(error, words.includes('--json')));
  process.exitCode = 1;
}

function perform(words: readonly string[], open: () => Promise<Ground>): Promise<Result<object | string>> {
  if (process.platform === 'win32')
    throw new Fault('unsupported_platform', 'that nobody else reads the key cannot be made sure on Windows');
  const [first] = words;
  if (first === 'identity')
    return identityCommand(words.slice(1), async () => ({
      create: (options) =>
        createIdentity({ file: identityFile(keyFile(processEnvironment)), random: systemRandom }, options),
      show: async (options) => {
        const ground = pairingGround(await open());
        return isRefusal(ground) ? ground : showIdentity(ground, options);
      },
    }));
  const inAgentSession = isInAgentSession(processEnvironment);
  return peerCommand(words, {
    terminal,
    inAgentSession,
    open: async () => {
      const ground = await open();
      return peerGround(ground, inAgentSession);
    },
  });
}

function peerGround(ground: Ground, inAgentSession: boolean): Result<PeerGround> {
  const pairing = pairingGround(ground);
  if (isRefusal(pairing)) return pairing;
  const calls = pairingCalls(pairing);
  return {
    calls,
    startRouter: () => {
      if (pairing.relays.length > 0) routerStarter(ground, note)(true);
    },
    waitForRequest: async ({ json }) => {
      const identity = await showIdentity(pairing, { newDoor: false });
      if (isRefusal(identity)) return identity;
      const ended = new AbortController();
      for (const signal of endingSignals) process.on(signal, () => ended.abort());
      const { clock, wake } = ground;
      const { address } = identity;
      const byOperator = !inAgentSession && !json;
      return waitForRequest({ calls, clock, wake, terminal, address, json, byOperator, ended: ended.signal });
    },
  };
}

/** A shell, a hook or a server of an agent host. */
function isInAgentSession(environment: Environment): boolean {
  return (
    hostSession(environment) !== undefined ||
    pinnedSession(environment) !== undefined ||
    environment.CLAUDECODE === '1'
  );
}
