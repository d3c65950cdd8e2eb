// What a request says, checked against its exact form before anything is done with it.

import type { Settlement } from '../ports/relay-queue.ts';
import { isObject } from '../protocol/json.ts';
import { isItemId, isToken, relayLimits } from '../protocol/relay-http.ts';
import { Refused } from './answers.ts';

const bad = (message: string): Refused => new Refused('bad_request', message);

/** Nothing in any path of ours is ever escaped, so that one path has one text. */
const pathForm = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;
export const isPath = (path: string): boolean => pathForm.test(path);

/** A whole number of the query, once; `without` where it is not there. */
export function numberOf(
  query: URLSearchParams,
  name: string,
  { least, most, without }: { least: number; most: number; without: number },
): number | Refused {
  const [text, ...more] = query.getAll(name);
  if (text === undefined) return without;
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  const fits = more.length === 0 && value >= least && value <= most;
  return fits ? value : bad(`${name} is a number from ${least} to ${most}`);
}

/** `application/json; charset=utf-8` without its parameters. */
export const mediaType = (header: string | undefined): string | undefined =>
  header?.split(';')[0]?.trim().toLowerCase();

/** Headers of a posted item. */
export function itemOf(
  header: (name: string) => string | undefined,
): { id: string; ttlMs: number } | Refused {
  const id = header('postbell-item');
  if (!isItemId(id)) return bad('Postbell-Item is 32 lower-case hex digits');
  const { ttlSecondsMin, ttlSecondsMax, ttlSecondsDefault } = relayLimits;
  const text = header('postbell-ttl') ?? String(ttlSecondsDefault);
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds >= ttlSecondsMin && seconds <= ttlSecondsMax))
    return bad(`Postbell-Ttl is a number of seconds from ${ttlSecondsMin} to ${ttlSecondsMax}`);
  return { id, ttlMs: seconds * 1_000 };
}

/** A JSON object; empty where there is no body at all. */
export function objectOf(body: Uint8Array): Record<string, unknown> | Refused {
  if (body.length === 0) return {};
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isObject(value) ? value : bad('the body is a JSON object');
  } catch {
    return bad('the body is not JSON');
  }
}

export function doorOf({ door = false }: Record<string, unknown>): boolean | Refused {
  return typeof door === 'boolean' ? door : bad('door is true or false');
}

export function settlementOf({ ack = [], defer = [] }: Record<string, unknown>): Settlement | Refused {
  if (!Array.isArray(ack) || !Array.isArray(defer)) return bad('ack and defer are lists');
  if (ack.length + defer.length > relayLimits.settleCountMax)
    return bad(`at most ${relayLimits.settleCountMax} items are settled at a time`);
  if (!ack.every(isToken)) return bad('ack is a list of tokens');
  const later: { token: string; delayMs: number }[] = [];
  for (const one of defer as unknown[]) {
    const { token, delay_s } = isObject(one) ? one : {};
    const delay = Number.isSafeInteger(delay_s) ? (delay_s as number) : 0;
    if (!isToken(token) || delay < 1 || delay > relayLimits.deferSecondsMax)
      return bad(`defer is a list of { token, delay_s }, of 1 to ${relayLimits.deferSecondsMax} seconds`);
    later.push({ token, delayMs: delay * 1_000 });
  }
  return { ack, defer: later };
}
