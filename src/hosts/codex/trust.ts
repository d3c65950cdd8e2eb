// What is asked of `codex app-server` so that it says which hooks a person trusts (0.171.0), and what its answers mean.
// Nothing is changed by it: trust is a person's to grant.

import type { CodexHook } from '../../ports/inspection.ts';
import { isObject } from '../../protocol/json.ts';

export interface Trust {
  /** As the server says it of itself. */
  version?: string;
  hooks?: readonly CodexHook[];
  /** How much Codex itself finds wrong with hooks. */
  errors: number;
  /** Why it lists none. */
  refused?: string;
}

const line = (frame: object): string => `${JSON.stringify(frame)}\n`;

export const openingOf = (version: string): string =>
  line({
    id: 1,
    method: 'initialize',
    params: {
      clientInfo: { name: 'postbell-doctor', title: null, version },
      capabilities: { experimentalApi: true },
    },
  });

/** Hears the server's lines, one after the other: what to say next, or what it came to. */
export function listenForTrust(
  pluginId: string,
  directory: string,
): (text: string) => { say?: string; end?: Trust } {
  let version: string | undefined;
  return (text) => {
    const frame = objectOf(parse(text));
    const result = objectOf(frame.result);
    if (frame.id === 1) {
      version = /^[^/]*\/(\d+\.\d+\.\d+[\w.+-]*)/.exec(wordOf(result.userAgent))?.[1];
      if (frame.error !== undefined) return { end: { errors: 0, refused: refusalOf(frame.error) } };
      const asked = { id: 2, method: 'hooks/list', params: { cwds: [directory] } };
      return { say: line({ method: 'initialized' }) + line(asked) };
    }
    if (frame.id !== 2) return {};
    const known = version === undefined ? {} : { version };
    if (!Array.isArray(result.data)) return { end: { ...known, errors: 0, refused: refusalOf(frame.error) } };
    const places = (result.data as unknown[]).map(objectOf);
    const hooks = places.flatMap((place) => listOf(place.hooks).flatMap((hook) => hookOf(hook, pluginId)));
    const errors = places.reduce((sum, place) => sum + listOf(place.errors).length, 0);
    return { end: { ...known, hooks, errors } };
  };
}

function hookOf(value: unknown, pluginId: string): CodexHook[] {
  const { pluginId: of, eventName, trustStatus, enabled } = objectOf(value);
  if (of !== pluginId) return [];
  return [{ event: wordOf(eventName), trust: wordOf(trustStatus), enabled: enabled !== false }];
}

const wordCharactersMax = 100;

/** A short text; whatever else stands in its place is never written out, however deep it may be. */
const wordOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= wordCharactersMax ? value : 'of another form';

/** Codex's own words stay where they are: they may quote settings, and with them what is secret. */
function refusalOf(error: unknown): string {
  const { code, message } = objectOf(error);
  if (/unknown variant|method not found/i.test(typeof message === 'string' ? message : ''))
    return 'it knows no such question';
  return Number.isSafeInteger(code) ? `error ${String(code)}` : 'an answer of another form';
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
