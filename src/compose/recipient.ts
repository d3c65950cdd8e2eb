// Whose mail a session gets beside its own: the name that its owner declared at launch, else the one of the host's
// config file. A name that was declared and does not count leaves the session without either.

import { realpathSync } from 'node:fs';
import type { Environment } from '../platform/environment.ts';
import { readPlacedFile } from '../platform/files.ts';
import { hostConfigFile, placesOf } from '../platform/paths.ts';
import { describeError, Fault, isRefusal } from '../protocol/errors.ts';
import { principalNamedIn, readHostConfig } from '../protocol/host-config.ts';
import { refusedRecipient } from '../protocol/reminder.ts';
import { readName, sessionScopedPrincipal } from '../protocol/scope.ts';
import type { HostKind } from '../protocol/session.ts';

export interface Recipient {
  /** Undefined where nobody named one. */
  named?: string;
  /** Declared by POSTBELL_RECIPIENT, and not merely configured. */
  declared: boolean;
  /** Why the declared or configured name does not count, as a whole line. */
  ignored?: string;
  /** It is a config that does not count, since others could have written it or it says nothing. */
  untrusted?: true;
}

export interface Situation {
  /** What the config of the session's own runner says, where it was read already. */
  configured?: string;
  /** Of a Codex thread. */
  workspace?: string | undefined;
  /** The environment is that of an app-server which threads of several terminals share: nobody knows whom it names. */
  shared?: boolean;
}

/** The owner named somebody for exactly this workspace, in a file that cannot be trusted: then nobody is registered. */
export const isUntrusted = ({ untrusted }: Recipient): boolean => untrusted === true;

/** @param host as which the session is known; undefined where nobody says: then no host's file counts */
export function recipientOf(
  environment: Environment,
  host: HostKind | undefined,
  { configured, workspace, shared = false }: Situation = {},
): Recipient {
  const declared = environment.POSTBELL_RECIPIENT;
  if (declared === undefined || shared) {
    const ignored =
      declared === undefined || declared.trim() === ''
        ? {}
        : { ignored: refusedRecipient('it is set for an app-server that several terminals share') };
    if (configured !== undefined) return { declared: false, named: configured };
    if (host === 'claude') return { declared: false, ...namedBy(configuredPrincipal(environment)) };
    if (host === 'codex') return { declared: false, ...ignored, ...codexOverride(environment, workspace) };
    return { declared: false, ...ignored };
  }
  if (declared.trim() === '') return { declared: false };
  const name = readName('POSTBELL_RECIPIENT', declared);
  return isRefusal(name)
    ? { declared: false, ignored: refusedRecipient(name.message) }
    : { declared: true, named: name };
}

const namedBy = (named: string | undefined): { named?: string } => (named === undefined ? {} : { named });

/** The recipient's name, else a principal that only this session has. */
export function principalOf(
  environment: Environment,
  host: HostKind,
  sessionId: string,
  situation?: Situation,
): string {
  return recipientOf(environment, host, situation).named ?? sessionScopedPrincipal(host, sessionId);
}

/** The line of a declared recipient that does not count; undefined where there is none, or a valid one. */
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

/** Of the threads of exactly one workspace. A file that cannot be trusted is said, and never passed over in silence. */
function codexOverride(
  environment: Environment,
  workspace: string | undefined,
): Pick<Recipient, 'named' | 'ignored' | 'untrusted'> {
  if (process.platform === 'win32' || workspace === undefined) return {};
  const file = hostConfigFile(placesOf(environment), 'codex-session');
  const refused = (why: string) => ({
    ignored: `the Codex override does not count: ${why}`,
    untrusted: true as const,
  });
  try {
    const text = readPlacedFile(file);
    if (text === undefined) return {};
    const config = readHostConfig('codex-session', text);
    if (isRefusal(config)) return refused(`${file}: ${config.message}`);
    return config.workspace === realpathSync(workspace) ? { named: config.principal_id } : {};
  } catch (error) {
    return refused(describeError(error).message);
  }
}
