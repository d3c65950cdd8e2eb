// The account's identity and whom it trusts, as the owner's files say at this moment.

import type { Result } from '../protocol/errors.ts';
import type { Policy, TrustedPeer } from '../protocol/policy.ts';
import type { Signer } from './relay.ts';

export interface Identity extends Signer {
  /** The 32 bytes that the key is made from: opens what was sealed to it. */
  readonly seed: Uint8Array;
}

export interface Account {
  /** Refusal `identity_unavailable` where there is none or it is malformed, `insecure_path` where others can read it. */
  identity(): Result<Identity>;
  /**
   * Read anew at each call, so that a change holds from the next message on; empty where no file is. Refusal `store_unreadable` or
   * `insecure_path` where it cannot be read or is no policy, naming the file.
   */
  policy(): Result<Policy>;
}

export interface IdentityFile {
  /**
   * Writes the seed in one step: of several writers one wins, and a reader sees it whole. Refusal `invalid_request` where there is one
   * and it is not to be replaced; faults of the path.
   */
  create(seed: Uint8Array, options: { replace: boolean }): Result<{ key: string; path: string }>;
}

/** The one way by which Postbell itself changes whom the account trusts. Faults where it cannot be locked or written. */
export interface PolicyFile {
  /**
   * The same name and key again changes nothing. Refusal `conflict` where the name has another key or the key another name:
   * nothing is rekeyed silently. Refusals of `Account.policy`; `invalid_request` for a name or key that can be none.
   * @param wanted asked while nobody else can write: where it says no, nothing is added, and the answer is undefined
   */
  add(peer: { name: string; key: string }): Promise<Result<TrustedPeer>>;
  add(peer: { name: string; key: string }, wanted: () => boolean): Promise<Result<TrustedPeer | undefined>>;
  /** Undefined where the key is nobody's. */
  remove(key: string): Promise<Result<TrustedPeer | undefined>>;
}
