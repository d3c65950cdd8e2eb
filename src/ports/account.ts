// The account's identity and whom it trusts, as the owner's files say at this moment.

import type { Result } from '../protocol/errors.ts';
import type { Policy } from '../protocol/policy.ts';
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
