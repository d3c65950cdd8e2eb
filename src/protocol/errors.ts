// The closed list of codes. A refusal is a value; a fault (store, router, platform) is thrown as Fault;
// both carry one of these codes and are shown in the same shape on every surface.

import { harmless } from './json.ts';

/** Who can change the outcome: the caller, the recipient's state, this machine's owner, another machine, or Postbell itself. */
export type FaultSide = 'caller' | 'recipient' | 'owner' | 'peer' | 'postbell';

interface CodeRow {
  readonly fault: FaultSide;
  readonly retryable: boolean;
  readonly hint: string;
}

const row = (fault: FaultSide, retryable: boolean, hint: string): CodeRow => ({ fault, retryable, hint });

const frameFault = row('caller', false, 'version mismatch or defective client');
const hostFault = row('recipient', true, 'the session can still read it');
const routerDefect = row('postbell', false, 'report it');

const table = {
  usage: row('caller', false, 'see --help'),
  invalid_request: row('caller', false, 'change the call; see --help or the tool description'),
  path_shaped_identifier: row('caller', false, 'pass the name, for example reviewer'),
  payload_too_large: row('caller', false, 'store the content elsewhere and send where it is'),
  idempotency_conflict: row('caller', false, 'use a new key for new content'),
  invalid_cursor: row('caller', false, 'poll again without a cursor'),
  not_available: row('caller', false, 'check project, recipient and target_kind'),
  intended_for_other_session: row(
    'caller',
    false,
    'that session records it by its tools, also in Codex where its thread is known; from a Codex shell: postbell message intake',
  ),
  session_not_nameable: row('caller', false, 'send with target_kind session, or to the principal'),
  generation_changed: row('recipient', true, 'run discover, decide again'),
  native_message_too_large: row('caller', false, 'send to the principal, or shorten'),
  recipient_unavailable: row(
    'recipient',
    true,
    'retry with the same key, or use fallback_to_principal; the message is kept',
  ),
  router_unreachable: row('owner', true, 'start it: postbell router'),
  router_timeout: row('postbell', true, 'read receipts before retrying'),
  router_outdated: row('owner', true, 'it is replaced by itself, or by the printed command'),
  router_version_mismatch: row('owner', false, 'point POSTBELL_ROUTER_SOCKET elsewhere'),
  router_superseded: row('owner', true, 'start the installed version'),
  router_already_running: row('owner', false, 'use it'),
  router_start_in_progress: row('owner', true, 'wait a moment'),
  socket_path_too_long: row('owner', false, 'set POSTBELL_ROUTER_SOCKET to a shorter absolute path'),
  invalid_socket_path: row('owner', false, 'give an absolute path'),
  socket_path_occupied: row('owner', false, 'move it, or choose another path'),
  insecure_path: row('owner', false, 'only this account may have access to the named path'),
  unsupported_platform: row('owner', false, 'durable messages work; wake-up does not'),
  authentication_failed: row('caller', false, 'same account and data directory?'),
  stale_generation: row('recipient', true, 'hosts register again by themselves'),
  session_identity_conflict: row('caller', false, 'end the live one first, or use its principal'),
  bell_outranked: row('owner', true, 'nothing to do: the process that holds the session rings'),
  delivery_not_found: routerDefect,
  outcome_scope_mismatch: routerDefect,
  invalid_adapter_receipt: routerDefect,
  unsupported_version: frameFault,
  unsupported_type: frameFault,
  invalid_json: frameFault,
  invalid_frame: frameFault,
  invalid_field: frameFault,
  unexpected_field: frameFault,
  frame_too_large: frameFault,
  hop_limit: frameFault,
  rate_limited: row('caller', true, 'wait as long as details says'),
  loop_limit: row('caller', false, 'ask the person'),
  storage_quota_exceeded: row('owner', false, 'prune, or raise the quota'),
  invalid_storage_quota: row('owner', false, 'a non-negative integer'),
  not_found: row('caller', false, 'list first'),
  outbox_full: row('owner', true, 'postbell doctor: which relay or peer is stuck'),
  unknown_peer: row('caller', false, 'postbell peer list'),
  ambiguous_peer: row('caller', false, 'postbell peer list'),
  peer_not_paired: row('peer', true, 'postbell peer requests'),
  identity_unavailable: row('owner', false, 'postbell identity show'),
  operator_required: row('caller', false, 'a person runs the command that is named'),
  conflict: row('caller', false, 'remove the other one first, or use its name'),
  connection_closed: row('postbell', true, 'retry'),
  invalid_response: row('postbell', true, 'retry'),
  host_outcome_timeout: row('recipient', true, 'retry with the same key, or let it wait'),
  adapter_error: hostFault,
  adapter_rejected: hostFault,
  adapter_disconnected: hostFault,
  adapter_queue_full: hostFault,
  codex_queue_timeout: hostFault,
  codex_queue_rejected: hostFault,
  codex_queue_process_failed: hostFault,
  thread_not_found: hostFault,
  thread_unavailable: hostFault,
  companion_busy: row('owner', true, 'wait a moment; the next start of the session tries again'),
  already_accepted: routerDefect,
  store_busy: row('postbell', true, 'retry'),
  store_unreadable: row('owner', false, 'look at the named file'),
  store_full: row('owner', true, 'free space; nothing was changed'),
  store_unwritable: row('owner', false, 'mode and owner of the named path'),
  project_unavailable: row('caller', false, 'pass project'),
  project_ambiguous: row('caller', false, 'pass project'),
  internal_error: row('postbell', false, 'report it'),
} as const satisfies Record<string, CodeRow>;

export type ErrorCode = keyof typeof table;

/** The closed list. */
export const errorCodes = Object.keys(table) as readonly ErrorCode[];

/** Ids and field names that help the caller; never payload text. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

/** What every surface shows of a refusal or fault. */
export interface ErrorShape {
  code: ErrorCode;
  message: string;
  fault: FaultSide;
  retryable: boolean;
  hint: string;
  details?: ErrorDetails;
}

/** A refusal: bad input or a state that does not allow the call. Returned, never thrown. */
export class Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails | undefined;

  constructor(code: ErrorCode, message: string, details?: ErrorDetails) {
    this.code = code;
    this.message = message;
    this.details = details;
  }
}

/** A use case answers this: its value, or why it refused. */
export type Result<T> = T | Refusal;

/** Whether a result is a refusal. */
export function isRefusal(result: unknown): result is Refusal {
  return result instanceof Refusal;
}

/** Something outside the call failed: store, router, platform. Thrown; the foreign error is kept as cause. */
export class Fault extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: ErrorDetails } = {}) {
    super(message, { cause: options.cause });
    this.name = 'Fault';
    this.code = code;
    this.details = options.details;
  }
}

/** Whether `code` is one of the closed list. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(table, code);
}

/** Only the name of an unknown error is shown: its text may hold what nobody else may read. */
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

/** The one line that a failed command prints on stderr. */
export function failureLine(error: unknown, json: boolean): string {
  const shape = describeError(error);
  const line = json
    ? JSON.stringify({ error: shape })
    : `postbell: ${shape.code}: ${shape.message} (${shape.hint})`;
  return `${harmless(line)}\n`;
}

/** The shape shown to callers. An unknown error becomes `internal_error` without its text. */
export function describeError(error: unknown): ErrorShape {
  const known = error instanceof Refusal || error instanceof Fault;
  const code: ErrorCode = known ? error.code : 'internal_error';
  const message = known ? error.message : `an unexpected failure in Postbell (${nameOf(error)})`;
  const { fault, retryable, hint } = table[code];
  const details = known ? error.details : undefined;
  // A message that is named was stored before: what could not be written is what came after it.
  const after = code === 'store_full' && details?.message_id !== undefined;
  const help = after ? 'free space, then send it again under its key' : hint;
  return { code, message, fault, retryable, hint: help, ...(details && { details }) };
}
