// The relays of this account, as its owner lists them.

import { Refusal, type Result } from '../protocol/errors.ts';
import { quoted } from '../protocol/json.ts';
import { isCanonicalOrigin } from '../protocol/origin.ts';
import { type Environment, setting } from './environment.ts';

const relaysMax = 4;

/** Origins in the order given, each once; none where the variable is unset: then nothing leaves this machine. */
export function relaysOf(environment: Environment): Result<readonly string[]> {
  const listed = setting(environment, 'POSTBELL_RELAYS');
  if (listed === undefined) return [];
  const origins = new Set<string>();
  for (const entry of listed.split(',').map((one) => one.trim())) {
    const origin = originOf(entry);
    if (origin === undefined)
      return new Refusal(
        'invalid_request',
        `POSTBELL_RELAYS: ${quoted(entry)} is no origin of a relay, as https://relay.example`,
        { field: 'POSTBELL_RELAYS' },
      );
    origins.add(origin);
  }
  return origins.size <= relaysMax
    ? [...origins]
    : new Refusal('invalid_request', `POSTBELL_RELAYS names more than ${relaysMax} relays`, {
        field: 'POSTBELL_RELAYS',
      });
}

/** As it is signed and compared; a person may write it with capitals, the usual port or a slash at its end. */
function originOf(entry: string): string | undefined {
  if (!URL.canParse(entry)) return undefined;
  const { origin, pathname, search, hash, username, password, href } = new URL(entry);
  const bare = pathname === '/' && search === '' && hash === '' && username === '' && password === '';
  return bare && !/[?#]$/.test(href) && isCanonicalOrigin(origin) ? origin : undefined;
}
