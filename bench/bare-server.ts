// The yardstick of an idle session's memory: the least that could serve, which is one store held open and lines in,
// lines out.

import { createInterface } from 'node:readline';
import BetterSqlite3 from 'better-sqlite3';

const database = new BetterSqlite3(process.argv[2] as string);
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
const count = database.prepare('SELECT count(*) AS tables FROM sqlite_schema');

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id } = JSON.parse(line) as { id?: number };
    if (id === undefined) return;
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: count.get() })}\n`);
  })
  .on('close', () => process.exit(0));
