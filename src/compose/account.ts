import { accountOf } from '../platform/account.ts';
import type { Environment } from '../platform/environment.ts';
import { keyFile, policyFile } from '../platform/paths.ts';
import type { Account } from '../ports/account.ts';

/** The account's identity and whom it trusts, by the files that the environment names. */
export const accountIn = (
  environment: Environment,
  { policyExists = false }: { policyExists?: boolean } = {},
): Account => accountOf({ keyFile: keyFile(environment), policyFile: policyFile(environment), policyExists });
