// The ledgers of the Stop gate: one owner-private file a session, replaced whole.

import path from 'node:path';
import { fileName } from '../crypto/file-name.ts';
import type { GateLedger, Ledgers } from '../ports/ledger.ts';
import { Fault } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import { ensureDirectory, readPrivateFile, replacePrivateFile } from './files.ts';

/** In `directory`, which is made with the first of them. */
export function ledgersIn(directory: string): Ledgers {
  const fileOf = (session: string): string => path.join(directory, `${fileName(session)}.json`);
  return {
    read: (session) => {
      try {
        const text = readPrivateFile(fileOf(session));
        return text === undefined ? undefined : (parse(text) ?? 'corrupt');
      } catch (error) {
        if (error instanceof Fault) return 'corrupt';
        throw error;
      }
    },
    write: (session, { floor, blocked }) => {
      ensureDirectory(directory);
      replacePrivateFile(fileOf(session), JSON.stringify({ version: 1, floor, blocked }));
    },
  };
}

function parse(text: string): GateLedger | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(parsed) || parsed.version !== 1) return undefined;
  const { floor, blocked } = parsed;
  if (!Number.isSafeInteger(floor) || !Array.isArray(blocked) || !blocked.every(isEntry)) return undefined;
  return { floor: floor as number, blocked };
}

function isEntry(entry: unknown): entry is GateLedger['blocked'][number] {
  if (!Array.isArray(entry) || entry.length !== 3) return false;
  const [seq, project, id] = entry;
  return Number.isSafeInteger(seq) && typeof project === 'string' && typeof id === 'string';
}
