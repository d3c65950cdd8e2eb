// Writes the owner's policy file: under its lock, read anew, changed and put in the place of the old one, so that several writers
// lose nothing of each other's and a reader sees the one or the other.

import { statSync } from 'node:fs';
import path from 'node:path';
import type { PolicyFile } from '../ports/account.ts';
import type { Clock } from '../ports/clock.ts';
import type { Lock } from '../ports/lock.ts';
import { Fault, Refusal, type Result } from '../protocol/errors.ts';
import { quoted } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import type { Policy, TrustedPeer } from '../protocol/policy.ts';
import { emptyPolicy, petnameFault, withoutPeer, withPeer } from '../protocol/policy-text.ts';
import { isKey, policyOf } from './account.ts';
import { ensureDirectory, fileFault, replaceOwnersFile } from './files.ts';
import { readOwnersFile, realTarget } from './owners-file.ts';

const lockRetryMs = 20;

interface Change<T> {
  text?: string;
  answer: T;
}

/** @param takeLock a kernel lock over that file, or undefined while another holds it */
export function policyFileAt(
  file: string,
  { clock, takeLock }: { clock: Clock; takeLock(lockFile: string): Lock | undefined },
): PolicyFile {
  const change = async <T>(work: (text: string, policy: Policy) => Result<Change<T>>): Promise<Result<T>> => {
    ensureDirectory(path.dirname(file));
    const target = targetOf(file);
    const lock = await lockOf(target, clock, takeLock);
    try {
      const read = readOwnersFile(target);
      if (read instanceof Refusal) return read;
      const text = read ?? emptyPolicy;
      const policy = policyOf(text, file);
      if (policy instanceof Refusal) return policy;
      const changed = work(text, policy);
      if (changed instanceof Refusal) return changed;
      if (changed.text !== undefined) replaceOwnersFile(target, changed.text, modeOf(target));
      return changed.answer;
    } finally {
      lock.release();
    }
  };
  return {
    add: ((peer: { name: string; key: string }, wanted: () => boolean = () => true) =>
      change<TrustedPeer | undefined>((text, policy) =>
        wanted()
          ? adding(text, policy, { name: peer.name.normalize('NFC'), key: peer.key })
          : { answer: undefined },
      )) as PolicyFile['add'],
    remove: (key) =>
      change<TrustedPeer | undefined>((text, policy) => {
        const peer = policy.of(key);
        return { answer: peer, ...(peer && { text: withoutPeer(text, peer.name) }) };
      }),
  };
}

function adding(
  text: string,
  policy: Policy,
  peer: { name: string; key: string },
): Result<Change<TrustedPeer>> {
  const { name, key } = peer;
  const fault = petnameFault(name);
  if (fault !== undefined)
    return new Refusal('invalid_request', `the name ${quoted(name)} ${fault}`, { field: 'name' });
  if (!isKey(key)) return new Refusal('invalid_request', 'that is no public key', { field: 'key' });
  const known = policy.of(key);
  const taken = policy.named(name);
  if (known !== undefined && known === taken) return { answer: known };
  if (taken !== undefined)
    return new Refusal(
      'conflict',
      `${quoted(taken.name)} is the name of another key; choose another name, or remove that peer first`,
      {
        field: 'name',
        key: taken.key,
      },
    );
  if (known !== undefined)
    return new Refusal(
      'conflict',
      `that key is the peer ${quoted(known.name)} already; remove it first to rename it`,
      {
        field: 'key',
        name: known.name,
      },
    );
  return { text: withPeer(text, peer), answer: { name, key, receipts: true } };
}

function targetOf(file: string): string {
  try {
    return realTarget(file);
  } catch (error) {
    throw fileFault(error, file, 'written');
  }
}

/** Of the file that is replaced, or of a new one. */
const modeOf = (target: string): number =>
  (statSync(target, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777;

/** One lock a real file, whichever link led to it. Fault `store_busy` where another holds it too long. */
async function lockOf(
  target: string,
  clock: Clock,
  takeLock: (lockFile: string) => Lock | undefined,
): Promise<Lock> {
  const deadline = clock.elapsedMs() + limits.writeLockWaitMs;
  for (;;) {
    const lock = takeLock(`${target}.lock`);
    if (lock !== undefined) return lock;
    if (clock.elapsedMs() >= deadline)
      throw new Fault('store_busy', `another process is writing ${target}`, { details: { path: target } });
    await new Promise<void>((resolve) => clock.after(lockRetryMs, resolve));
  }
}
