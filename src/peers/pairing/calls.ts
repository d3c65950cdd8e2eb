// What a surface may ask of pairing, over one ground.

import { isUsableKey } from '../../crypto/ed25519.ts';
import { fingerprint } from '../../crypto/fingerprint.ts';
import { keyBytes } from '../../crypto/key-text.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { type AcceptAnswer, type AcceptRequest, accept } from './accept.ts';
import { type AddAnswer, add } from './add.ts';
import { type AskAnswer, type AskRequest, ask, targetOf } from './ask.ts';
import { type PairingGround, requestNamed } from './ground.ts';
import { type ListAnswer, list } from './list.ts';
import { type RejectAnswer, reject } from './reject.ts';
import { type RemoveAnswer, type RemoveRequest, remove } from './remove.ts';
import { requests, type ShownRequest } from './requests.ts';

/** Whom a person is asked about. */
export interface Asking {
  key: string;
  fingerprint: string;
  /** Absent where there is nothing to compare it with. */
  pair_code?: string;
  /** What it calls itself, where it does: data of a stranger. */
  claimed_name?: string;
}

export interface PairingCalls {
  list(): Result<ListAnswer>;
  requests(options: { byOperator: boolean }): Promise<Result<{ requests: ShownRequest[] }>>;
  /** The identity that an address, a pending request or a plain key names, before anything is done. */
  whoIs(of: { target: string } | { request: string } | { key: string }): Promise<Result<Asking>>;
  ask(request: AskRequest): Promise<Result<AskAnswer>>;
  accept(request: AcceptRequest): Promise<Result<AcceptAnswer>>;
  reject(key: string): Promise<Result<RejectAnswer>>;
  add(request: { name: string; key: string }): Promise<Result<AddAnswer>>;
  remove(request: RemoveRequest): Promise<Result<RemoveAnswer>>;
}

export const pairingCalls = (ground: PairingGround): PairingCalls => ({
  list: () => list(ground),
  requests: (options) => requests(ground, options),
  whoIs: (of) => whoIs(ground, of),
  ask: (request) => ask(ground, request),
  accept: (request) => accept(ground, request),
  reject: (key) => reject(ground, key),
  add: (request) => add(ground, request),
  remove: (request) => remove(ground, request),
});

async function whoIs(
  ground: PairingGround,
  of: { target: string } | { request: string } | { key: string },
): Promise<Result<Asking>> {
  if ('target' in of) return targetOf(ground, of.target);
  if ('request' in of) return pendingOf(ground, of.request);
  const key = of.key.trim();
  const bytes = keyBytes(key);
  return bytes !== undefined && isUsableKey(bytes)
    ? { key, fingerprint: fingerprint(key) }
    : new Refusal(
        'invalid_request',
        'that is no public key: 43 characters, as its owner\u2019s identity show prints it',
        {
          field: 'key',
        },
      );
}

async function pendingOf(ground: PairingGround, named: string): Promise<Result<Asking>> {
  const shown = await requests(ground, { byOperator: false });
  if (isRefusal(shown)) return shown;
  const pending = ground.store.read((tx) => requestNamed(tx, named));
  if (isRefusal(pending)) return pending;
  const found = shown.requests.find(({ key }) => key === pending.peer_key);
  return found ?? new Refusal('not_found', 'that pairing request has expired');
}
