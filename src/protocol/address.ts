// The address that an identity gives to others, so that they can ask to pair: its key, its door, and the relays where the door is.

import { isKeyText } from './base64url.ts';
import { Refusal, type Result } from './errors.ts';
import { isCanonicalOrigin, originRule } from './origin.ts';
import { wireLimits } from './wire/limits.ts';

export interface Address {
  /** 43 characters, base64url. Whether it is a key that may be used is asked of the cryptography. */
  key: string;
  /** 32 lower-case hex digits. */
  door: string;
  /** Origins, 1 to 4, each once. */
  relays: readonly string[];
}

/** Far more than an address has. */
const charactersMax = 2_048;

/** `postbell:<key>.<door>@<origin>[,<origin>]` */
export function formatAddress({ key, door, relays }: Address): string {
  return `postbell:${key}.${door}@${relays.join(',')}`;
}

const refuse = (why: string): Refusal =>
  new Refusal('invalid_request', `this is no address: ${why}`, { field: 'address' });

const form = /^postbell:([A-Za-z0-9_-]{43})\.([0-9a-f]{32})@(.*)$/s;

/** Reads what `formatAddress` writes, and nothing else. White space around it is the caller's to trim. */
export function readAddress(text: string): Result<Address> {
  if (text.length > charactersMax) return refuse(`it has more than ${charactersMax} characters`);
  const [, key, door, listed] = form.exec(text) ?? [];
  if (key === undefined || door === undefined || listed === undefined)
    return refuse('it reads postbell:<key>.<door>@<relay>[,<relay>]');
  if (!isKeyText(key)) return refuse('its key is not 32 bytes in base64url');
  const relays = listed.split(',');
  if (relays.length > wireLimits.relaysMax)
    return refuse(`it names more than ${wireLimits.relaysMax} relays`);
  if (!relays.every(isCanonicalOrigin)) return refuse(originRule);
  if (new Set(relays).size < relays.length) return refuse('it names a relay twice');
  return { key, door, relays };
}
