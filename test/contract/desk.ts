// A post office of its own for each scene: the real store in a temporary directory, a clock that stands still, and
// a router that answers what the scene says. Alice sends, Bob receives.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach } from 'vitest';
import type { Caller, Desk } from '../../src/mailbox/desk.ts';
import { type SendAnswer, send } from '../../src/mailbox/send.ts';
import type { ConnectionRow } from '../../src/ports/presence.ts';
import type { NotifyAnswer } from '../../src/ports/router.ts';
import type { Store } from '../../src/ports/store.ts';
import type { Wake } from '../../src/ports/wake.ts';
import { isRefusal, type Refusal, type Result } from '../../src/protocol/errors.ts';
import { type Fields, readFields, type ValuesOf } from '../../src/protocol/fields.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import type { Registration } from '../../src/protocol/session.ts';
import { Leases } from '../../src/sessions/leases.ts';
import { type Registered, register } from '../../src/sessions/register.ts';
import type { HandOff, HostOutcome, Switchboard } from '../../src/sessions/switchboard.ts';
import { openStore } from '../../src/store/open.ts';
import { FakeClock, seededRandom } from './clock.ts';

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** A directory that is gone after the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'postbell-'));
  ended.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Runs after the test, the last one first. */
export function atEnd(then: () => void): void {
  ended.push(then);
}

/** The touch within one process, counted. */
export class RecordingWake implements Wake {
  touches = 0;
  readonly #watchers = new Set<() => void>();

  touch(): void {
    this.touches += 1;
    for (const watcher of this.#watchers) watcher();
  }

  watch(onTouch: () => void): () => void {
    this.#watchers.add(onTouch);
    return () => void this.#watchers.delete(onTouch);
  }

  get watchers(): number {
    return this.#watchers.size;
  }
}

export interface Scene extends Desk {
  clock: FakeClock;
  wake: RecordingWake;
  directory: string;
  path: string;
  /** The router's use cases over the same store; `hand` is what the scene's host does. */
  board: Switchboard;
  /** Every hand-off so far. */
  handed: HandOff[];
  /** What a hand-off meets; a host that accepts a notice unless a scene says otherwise. */
  host: (handOff: HandOff, connection: ConnectionRow) => HostOutcome | Promise<HostOutcome>;
  /** What the router answers to `notify`; a fault where it throws. */
  onNotify: (call: {
    project: string;
    delivery_id: string;
    wait: boolean;
    expected_generation?: number;
  }) => NotifyAnswer | Promise<NotifyAnswer>;
  notified: string[];
  /** Rows of any table, by plain SQL. */
  rows(sql: string, ...values: unknown[]): Record<string, unknown>[];
  /** How many rows each table holds. */
  counts(): Record<string, number>;
  /** Another process's view: a second connection to the same file. */
  secondStore(): Promise<Store>;
}

export const accepted: HostOutcome = { outcome: 'accepted', content: 'notice', receipt: { taken: true } };

export async function openScene({ clock = new FakeClock(), seed = 7 } = {}): Promise<Scene> {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'postbell.db');
  const random = seededRandom(seed);
  const wake = new RecordingWake();
  const open = async (): Promise<Store> => {
    const store = await openStore({ path: file, clock, random });
    atEnd(() => store.close());
    return store;
  };
  const store = await open();
  const reader = new BetterSqlite3(file, { readonly: true });
  atEnd(() => reader.close());
  const rows: Scene['rows'] = (sql, ...values) => reader.prepare(sql).all(...values) as never;
  const scene: Scene = {
    directory,
    path: file,
    store,
    clock,
    random,
    wake,
    handed: [],
    host: () => accepted,
    notified: [],
    onNotify: () => ({ delivered: false, reason: 'dispatched' }),
    router: {
      notify: async (call) => {
        scene.notified.push(call.delivery_id);
        return scene.onNotify(call);
      },
      discover: async () => [],
    },
    board: {
      store,
      clock,
      random,
      wake,
      leases: new Leases(),
      instance: 'run_1',
      hostOutcomeWaitMs: 10_000,
      hand: async (connection, handOff) => {
        scene.handed.push(handOff);
        return scene.host(handOff, connection);
      },
    },
    rows,
    counts: () => countsOf(rows),
    secondStore: open,
  };
  return scene;
}

function countsOf(rows: Scene['rows']): Record<string, number> {
  const tables = rows(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`);
  return Object.fromEntries(
    tables.map(({ name }) => [
      String(name),
      Number(rows(`SELECT count(*) AS n FROM "${String(name)}"`)[0]?.n),
    ]),
  );
}

/** How the second counts differ from the first; unchanged tables are left out. */
export function difference(
  before: Record<string, number>,
  after: Record<string, number>,
): Record<string, number> {
  const changed = Object.keys(after).filter((table) => after[table] !== before[table]);
  return Object.fromEntries(changed.map((table) => [table, (after[table] ?? 0) - (before[table] ?? 0)]));
}

export const alice: Caller = { transport: 'cli', source_host: 'cli' };

/** A caller that is the session `id`. */
export const sessionCaller = (id: string, principal = 'bob'): Caller & { session: string } => ({
  transport: 'mcp',
  source_host: 'claude-code',
  session: id,
  principal,
});

/** The request as a surface reads it. */
export function read<S extends Fields>(fields: S, input: unknown): ValuesOf<S> {
  return ok(readFields(fields, input));
}

/** The value of a result that must not be a refusal. */
export function ok<T>(result: Result<T>): T {
  if (isRefusal(result)) throw new Error(`refused: ${result.code}: ${result.message}`);
  return result;
}

/** The refusal of a result that must be one. */
export function refused(result: unknown): Refusal {
  if (!isRefusal(result)) throw new Error(`not refused: ${JSON.stringify(result)}`);
  return result;
}

let keys = 0;

/** A letter from Alice to Bob, but for what `over` says. */
export function letter(over: Record<string, unknown> = {}): Record<string, unknown> {
  keys += 1;
  return {
    project: 'shop',
    sender: 'alice',
    recipient: 'bob',
    idempotency_key: `key-${keys}`,
    payload: 'hello bob',
    ...over,
  };
}

/** Sends as a surface does: fields first, then the use case. */
export async function post(
  desk: Desk,
  over: Record<string, unknown> = {},
  caller: Caller = alice,
): Promise<Result<SendAnswer>> {
  const request = readFields(sendFields, letter(over));
  return isRefusal(request) ? request : send(desk, request, caller);
}

/** A letter that is stored, whatever the router says. */
export async function posted(desk: Desk, over: Record<string, unknown> = {}): Promise<SendAnswer> {
  return ok(await post(desk, over));
}

/** Bob's session, as its process registers it. */
export function registration(session_id: string, over: Partial<Registration> = {}): Registration {
  return {
    project: 'shop',
    principal_id: 'bob',
    session_id,
    adapter_kind: 'claude-listener',
    bell: 'listener',
    host_kind: 'claude',
    ...over,
  };
}

export async function attach(
  scene: Scene,
  session_id: string,
  over: Partial<Registration> = {},
): Promise<Registered> {
  return ok(await register(scene.board, registration(session_id, over)));
}
