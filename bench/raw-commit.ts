// The yardstick of a send: the same rows in the same tables, as one commit by the driver alone, under FULL, with
// statements prepared once and values made beforehand.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import localMail from '../src/store/sql/001-local-mail.sql';
import wholeMail from '../src/store/sql/002-whole-mail.sql';
import { payloadBytes } from './desk.ts';

export interface RawCommits {
  /** Milliseconds of one commit. */
  commit(): number;
  sqliteVersion: string;
  close(): void;
}

/** @param writer sets its ids apart from those of other writers of the same store */
export function rawCommits(directory: string, writer = ''): RawCommits {
  mkdirSync(directory, { recursive: true });
  const database = new BetterSqlite3(path.join(directory, 'raw.db'), { timeout: 5_000 });
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
  const made = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'storage'`).get();
  if (made === undefined) database.exec(localMail + wholeMail);
  const [begin, commit] = [database.prepare('BEGIN IMMEDIATE'), database.prepare('COMMIT')];
  const message = database.prepare(
    `INSERT INTO message (message_id, project, sender, content_type, privacy, quiet, created_at, transport,
       source_host, payload, payload_sha256) VALUES (?, 'p', 's', 'text/plain', 'private', 0, ?, 'mcp', 'bench', ?, ?)`,
  );
  const delivery = database.prepare(
    `INSERT INTO delivery (delivery_id, message_id, project, recipient, target_kind)
     VALUES (?, ?, 'p', 'r', 'principal')`,
  );
  const event = database.prepare(
    `INSERT INTO event (event_id, event_kind, message_id, delivery_id, project, recipient, target_kind, created_at)
     VALUES (?, 'message_available', ?, ?, 'p', 'r', 'principal', ?)`,
  );
  const idempotency = database.prepare(`INSERT INTO idempotency VALUES ('p', 's', ?, ?, ?)`);
  const storage = database.prepare(
    'UPDATE storage SET payload_bytes = payload_bytes + octet_length(?) WHERE one = 1',
  );
  const payload = JSON.stringify('x'.repeat(payloadBytes));
  const hash = '0'.repeat(64);
  const at = new Date().toISOString();
  let count = 0;
  return {
    commit: () => {
      count += 1;
      const id = writer + count.toString(32).padStart(26, '0');
      const start = performance.now();
      begin.run();
      message.run(`msg_${id}`, at, payload, hash);
      delivery.run(`dlv_${id}`, `msg_${id}`);
      event.run(`evt_${id}`, `msg_${id}`, `dlv_${id}`, at);
      idempotency.run(`key-${id}`, hash, `msg_${id}`);
      storage.run(payload);
      commit.run();
      return performance.now() - start;
    },
    sqliteVersion: String(database.prepare('SELECT sqlite_version()').pluck().get()),
    close: () => database.close(),
  };
}
