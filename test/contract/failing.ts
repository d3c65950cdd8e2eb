// A store over a disk that fails at a chosen statement.

import BetterSqlite3 from 'better-sqlite3';
import type { Store } from '../../src/ports/store.ts';
import { Database } from '../../src/store/database.ts';
import { storeOver } from '../../src/store/open.ts';
import { atEnd, type Scene } from './desk.ts';

class FailingDatabase extends Database {
  /** How many statements that write are left; the last of them fails. */
  left = Number.POSITIVE_INFINITY;

  override run(...call: Parameters<Database['run']>): number {
    const writes = /^\s*(INSERT|UPDATE|DELETE)/i.test(call[0]);
    if (writes) this.left -= 1;
    if (writes && this.left === 0)
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' });
    return super.run(...call);
  }
}

/** Another connection to the scene's store; `database.left` says which statement fails. */
export function failingStore(desk: Scene): { database: FailingDatabase; store: Store } {
  const database = new FailingDatabase(new BetterSqlite3(desk.path));
  atEnd(() => database.close());
  return { database, store: storeOver(database, { ...desk, path: desk.path }) };
}
