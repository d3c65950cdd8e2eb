import { type Database, isBusy } from './database.ts';

/** A full check reads each byte: a gigabyte in seconds. Beyond this, only the structure of pages is looked at. */
const fullCheckBytesMax = 268_435_456;

/** What SQLite finds wrong with the store's file; undefined where it is whole. */
export function damageOf(database: Database): string | undefined {
  const bytes = (database.pragma('page_count') as number) * (database.pragma('page_size') as number);
  try {
    const check = bytes <= fullCheckBytesMax ? 'integrity_check(1)' : 'quick_check(1)';
    const said = String(database.pragma(check));
    return said === 'ok' ? undefined : (said.split('\n').at(-1) as string);
  } catch (error) {
    if (isBusy(error)) throw error;
    return String((error as { code?: unknown }).code);
  }
}
