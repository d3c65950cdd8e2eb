// How each code of the closed list is raised at a surface: one row a code, for the command and for the tool alike.

import { chmodSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { ErrorCode } from '../../src/protocol/errors.ts';
import { version } from '../../src/protocol/version.ts';
import { takeFile } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';
import { fillDisk, smallDisk } from './fake-disk.ts';
import { fakeRouter } from './fake-router.ts';
import { type Home, until } from './home.ts';
import { answer, type Env, postbell } from './postbell.ts';
import { ask } from './router-line.ts';
import type { Session } from './session.ts';
import { typed } from './typed.ts';

/** A home with a store in it and, unless a row makes its own, with a router and Bob's live session `s1`. */
export interface Place {
  home: Home;
  data: string;
  project: string;
  session: Session;
}

/** What is typed, and what the tool is called with. */
export interface Asked {
  words: string[];
  input?: string;
  tool?: string;
  arguments?: Record<string, unknown>;
}

export interface Raised {
  asked(place: Place): Asked | Promise<Asked>;
  /** A home of its own, which this makes so. */
  own?: (home: Home, data: string) => unknown;
  /** What becomes of it once the session's server runs. */
  later?: (home: Home, data: string) => unknown;
  env?: Env;
  roots?: readonly string[];
  /** Without root's power over modes. */
  plain?: true;
  /** No command, or no tool, can be answered so. */
  only?: 'cli' | 'mcp';
  /** Needs a disk that can be filled. */
  disk?: true;
}

const message = (action: string, request: Record<string, unknown>): Asked => {
  const [words, input] = typed(action, request);
  return { words, input, tool: 'message', arguments: { action, ...request } };
};

const letter = { sender: 'alice', recipient: 'bob', idempotency_key: 'k', payload: 'hello' };
const toSession = { ...letter, recipient: 's1', target_kind: 'session' };
const discover: Raised['asked'] = ({ project }) => message('discover', { project });
const sending =
  (over: object): Raised['asked'] =>
  ({ project }) =>
    message('send', { ...letter, project, ...over });
const peerKey = 'IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI';
const nothing = (): void => {};
const typing = (...words: string[]): Pick<Raised, 'asked' | 'only'> => ({
  asked: () => ({ words }),
  only: 'cli',
});
const startingRouter = typing('router');
const faked = (reply: (asked: string) => string | undefined | null) => (home: Home) =>
  fakeRouter(home, reply);

/** A letter in the place, by the tool. */
async function sent({ session, project }: Place, over: object): Promise<string> {
  const { isError, data } = await session.call('message', { action: 'send', ...letter, project, ...over });
  if (isError) throw new Error(`not sent: ${JSON.stringify(data)}`);
  return data.message_id as string;
}

/** The id of the last of `count` letters, each an answer to the one before, or all to the first. */
async function answers(place: Place, count: number, kind: 'chain' | 'star'): Promise<string> {
  let reply_to = await sent(place, { idempotency_key: kind });
  const first = reply_to;
  for (let nth = 0; nth < count; nth += 1) {
    const recipient = kind === 'chain' ? `chain-${nth}` : 'rated';
    reply_to = await sent(place, { idempotency_key: `${kind} ${nth}`, recipient, reply_to });
    if (kind === 'star') reply_to = first;
  }
  return reply_to;
}

async function startRouter(home: Home): Promise<void> {
  home.start(['router']);
  const answering = async () => (await postbell(home.env, home.project, ['router', 'status'])).code === 0;
  await until('the router answers', answering);
}

/** Bytes in the middle of every page but the first, as a failing disk leaves them. */
export function damage(file: string): void {
  const pageBytes = 4_096;
  const descriptor = openSync(file, 'r+');
  for (let at = pageBytes; at < statSync(file).size; at += pageBytes)
    writeSync(descriptor, Buffer.alloc(64, 0xff), 0, 64, at);
}

export const raised = {
  usage: typing('message', 'poll', '--nonsense'),
  invalid_request: { asked: ({ project }) => message('poll', { project, recipient: 'bob', limit: 101 }) },
  path_shaped_identifier: { asked: ({ project }) => message('poll', { project, recipient: '/root' }) },
  payload_too_large: { asked: sending({ payload: 'x'.repeat(65_535) }) },
  idempotency_conflict: {
    asked: async (place) => {
      await sent(place, { idempotency_key: 'same' });
      return sending({ idempotency_key: 'same', payload: 'other' })(place);
    },
  },
  invalid_cursor: {
    asked: ({ project }) => message('poll', { project, recipient: 'bob', cursor: 'nowhere' }),
  },
  not_available: {
    asked: ({ project }) => message('fetch', { project, recipient: 'bob', message_id: 'none' }),
  },
  intended_for_other_session: {
    asked: async (place) => {
      const message_id = await sent(place, { idempotency_key: 'meant', intended_session: 'another' });
      const scope = { project: place.project, recipient: 'bob', message_id, idempotency_key: 'i' };
      return message('intake', { ...scope, state: 'fetched' });
    },
  },
  session_not_nameable: {
    asked: async ({ data, project }) => {
      const of = { project, principal_id: 'bob', session_id: 'unnamed', host_kind: 'codex' };
      const kind = { adapter_kind: 'codex-app-server', bell: 'codex-queue', postbell_version: version };
      await ask(data, { type: 'register', ...of, ...kind });
      return sending({ intended_session: 'unnamed' })({ project } as Place);
    },
  },
  generation_changed: { asked: sending({ ...toSession, idempotency_key: 'g', expected_generation: 99 }) },
  native_message_too_large: {
    asked: sending({ ...toSession, idempotency_key: 'n', payload: 'x'.repeat(17_000) }),
  },
  recipient_unavailable: { asked: sending({ ...toSession, idempotency_key: 'u', recipient: 'gone' }) },
  rate_limited: {
    asked: async (place) => {
      const reply_to = await answers(place, 30, 'star');
      return sending({ idempotency_key: 'star more', recipient: 'rated', reply_to })(place);
    },
  },
  loop_limit: {
    asked: async (place) => {
      const reply_to = await answers(place, 31, 'chain');
      return sending({ idempotency_key: 'chain more', recipient: 'chain', reply_to })(place);
    },
  },
  identity_unavailable: { asked: () => ({ words: ['identity', 'show'], tool: 'list_peers' }) },
  operator_required: {
    asked: () => ({
      words: ['peer', 'add', 'bob', peerKey],
      tool: 'add_peer',
      arguments: { name: 'bob', key: peerKey },
    }),
  },
  unknown_peer: {
    own: (home) => answer(home.env, home.project, ['identity', 'create', '--json']),
    asked: () => ({ words: [], tool: 'remove_peer', arguments: { name: 'nobody' } }),
    only: 'mcp',
  },
  not_found: {
    asked: () => ({
      words: ['inbox', 'status', '--message-id', 'none'],
      tool: 'message_status',
      arguments: { msg_id: 'none' },
    }),
  },
  storage_quota_exceeded: {
    env: { POSTBELL_STORAGE_QUOTA_BYTES: '1' },
    asked: sending({ idempotency_key: 'q' }),
  },
  invalid_storage_quota: {
    env: { POSTBELL_STORAGE_QUOTA_BYTES: 'x' },
    asked: sending({ idempotency_key: 'q' }),
  },
  project_unavailable: {
    own: ({ project }) => mkdirSync(path.join(project, '.git')),
    asked: () => ({
      words: ['inbox', 'receive', '--recipient', 'bob'],
      tool: 'receive_messages',
      arguments: {},
    }),
  },
  project_ambiguous: {
    own: nothing,
    only: 'mcp',
    env: { CLAUDE_PROJECT_DIR: '' },
    roots: ['file:///one', 'file:///two'],
    asked: () => ({ words: [], tool: 'receive_messages', arguments: {} }),
  },
  router_unreachable: { own: nothing, asked: discover },
  router_timeout: { own: faked(() => undefined), asked: discover },
  router_version_mismatch: { own: faked(() => '{"v":2,"ok":true}'), asked: discover },
  invalid_response: { own: faked(() => 'HTTP/1.1 400 Bad Request'), asked: discover },
  connection_closed: { own: faked(() => null), ...typing('router', 'status') },
  authentication_failed: {
    own: async (home, data) => {
      await startRouter(home);
      const file = path.join(data, 'router.token');
      const token = readFileSync(file);
      writeFileSync(file, 'another\n');
      home.atEnd(() => writeFileSync(file, token));
    },
    asked: discover,
  },
  insecure_path: {
    own: (_, data) => {
      writeFileSync(path.join(data, 'router.token'), 'x\n');
      chmodSync(path.join(data, 'router.token'), 0o644);
    },
    asked: discover,
  },
  router_superseded: {
    own: async (_, data) => {
      const at = path.join(data, 'postbell.db');
      const store = await openStore({ path: at, clock: systemClock, random: systemRandom });
      await store.write((tx) => tx.routers.supersede(version, systemClock.nowMs()));
      store.close();
    },
    ...startingRouter,
  },
  router_already_running: { own: startRouter, ...startingRouter },
  router_start_in_progress: {
    own: (home, data) => {
      const lock = takeFile(path.join(data, 'router-v1.lock'));
      home.atEnd(() => lock?.release());
    },
    ...startingRouter,
  },
  socket_path_too_long: {
    own: nothing,
    env: { POSTBELL_ROUTER_SOCKET: `/${'x'.repeat(103)}` },
    ...startingRouter,
  },
  invalid_socket_path: { own: nothing, env: { POSTBELL_ROUTER_SOCKET: 'relative' }, ...startingRouter },
  socket_path_occupied: {
    own: (_, data) => writeFileSync(path.join(data, 'router-v1.sock'), 'a file'),
    ...startingRouter,
  },
  store_busy: {
    own: nothing,
    later: (home, data) => {
      const holder = new BetterSqlite3(path.join(data, 'postbell.db'));
      holder.exec('BEGIN IMMEDIATE');
      home.atEnd(() => holder.close());
    },
    asked: sending({}),
  },
  store_unreadable: {
    own: nothing,
    later: (_, data) => damage(path.join(data, 'postbell.db')),
    asked: ({ project }) => message('poll', { project, recipient: 'bob' }),
  },
  store_unwritable: {
    own: (_, data) => chmodSync(path.join(data, 'postbell.db'), 0o400),
    plain: true,
    asked: sending({}),
  },
  store_full: {
    own: async (home) => {
      smallDisk(home);
      await answer(home.env, home.project, ['send', 'bob', '--json'], 'x');
    },
    later: (_, data) => fillDisk(data),
    disk: true,
    asked: sending({ payload: 'x'.repeat(60_000) }),
  },
} as const satisfies Partial<Record<ErrorCode, Raised>>;

/** Codes that only the router's frames, attempts or a host's process carry, and the tests that raise them. */
export const elsewhere = {
  ambiguous_peer: 'contract/peer-list.test.ts',
  conflict: 'contract/pairing.test.ts',
  outbox_full: 'contract/pairing.test.ts',
  peer_not_paired: 'contract/peer-list.test.ts',
  router_outdated: 'process/outdated.test.ts',
  stale_generation: 'contract/sessions.test.ts',
  session_identity_conflict: 'contract/sessions.test.ts',
  bell_outranked: 'contract/sessions.test.ts',
  delivery_not_found: 'contract/attempt.test.ts',
  outcome_scope_mismatch: 'contract/late.test.ts',
  invalid_adapter_receipt: 'contract/router.test.ts',
  already_accepted: 'contract/late.test.ts',
  unsupported_version: 'process/router.test.ts',
  unsupported_type: 'process/router.test.ts',
  invalid_json: 'process/router.test.ts',
  invalid_frame: 'process/router.test.ts',
  invalid_field: 'process/router.test.ts',
  unexpected_field: 'process/router.test.ts',
  hop_limit: 'process/router.test.ts',
  frame_too_large: 'contract/wires.test.ts',
  host_outcome_timeout: 'contract/attempt.test.ts',
  adapter_error: 'contract/ringing.test.ts',
  adapter_rejected: 'contract/attempt.test.ts',
  adapter_disconnected: 'contract/attempt.test.ts',
  adapter_queue_full: 'contract/expected.test.ts',
  codex_queue_timeout: 'contract/codex-queue.test.ts',
  codex_queue_rejected: 'contract/codex-queue.test.ts',
  codex_queue_process_failed: 'contract/codex-queue.test.ts',
  thread_not_found: 'contract/codex-queue.test.ts',
  thread_unavailable: 'contract/codex-queue.test.ts',
  companion_busy: 'process/companion.test.ts',
  unsupported_platform: 'process/agent-setup.test.ts',
  internal_error: 'process/output.test.ts',
} as const satisfies Partial<Record<ErrorCode, string>>;
