// Whose mail a session gets beside its own: the name that its owner declared at launch, else the one of the host's
// config file. A name that was declared and does not count leaves the session without either.

import type { Environment } from '../platform/environment.ts';
import { readPlacedFile } from '../platform/files.ts';
import { hostConfigFile, placesOf } from '../platform/paths.ts';
import { Fault, isRefusal } from '../protocol/errors.ts';
import { principalNamedIn } from '../protocol/host-config.ts';
import { readName, sessionScopedPrincipal } from '../protocol/scope.ts';
import type { HostKind } from '../protocol/session.ts';

export interface Recipient {
  /** Undefined where nobody named one. */
  named?: string;
  /** Declared by POSTBELL_RECIPIENT, and not merely configured. */
  declared: boolean;
  /** Why POSTBELL_RECIPIENT does not count. */
  ignored?: string;
}

/**
 * @param host as which the session is known; undefined where nobody says: then no host's file counts
 * @param configured what that file says, where it was read already
 */
export function recipientOf(
  environment: Environment,
  host: HostKind | undefined,
  configured?: string,
): Recipient {
  const declared = environment.POSTBELL_RECIPIENT;
  if (declared === undefined) {
    const named = configured ?? (host === 'claude' ? configuredPrincipal(environment) : undefined);
    return { declared: false, ...(named !== undefined && { named }) };
  }
  if (declared.trim() === '') return { declared: false };
  const name = readName('POSTBELL_RECIPIENT', declared);
  return isRefusal(name) ? { declared: false, ignored: name.message } : { declared: true, named: name };
}

/** The recipient's name, else a principal that only this session has. */
export function principalOf(
  environment: Environment,
  host: HostKind,
  sessionId: string,
  configured?: string,
): string {
  return recipientOf(environment, host, configured).named ?? sessionScopedPrincipal(host, sessionId);
}

/** Why a declared recipient does not count; undefined where there is none, or a valid one. */
export const recipientIgnored = (environment: Environment): string | undefined =>
  recipientOf(environment, undefined).ignored;

/** Of all Claude sessions of the account. A file that cannot be trusted is no file, also where that cannot be checked. */
function configuredPrincipal(environment: Environment): string | undefined {
  if (process.platform === 'win32') return undefined;
  try {
    const text = readPlacedFile(hostConfigFile(placesOf(environment), 'claude'));
    return text === undefined ? undefined : principalNamedIn(text);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
