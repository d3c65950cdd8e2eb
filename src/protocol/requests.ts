// The actions of the mail and their closed field lists, in wire spelling. The CLI derives its flags from these
// tables, the MCP server its schemas.

import type { Fields, ValuesOf } from './fields.ts';
import { limits } from './limits.ts';
import { activations, dispositions } from './receipts.ts';

const project = { kind: 'name', required: true, about: 'the project (scope) of the inbox' } as const;
const recipient = { kind: 'name', required: true, about: 'the inbox: a principal, or a session id' } as const;
const messageId = {
  kind: 'text',
  max: limits.idCharactersMax,
  required: true,
  about: 'the message',
} as const;
const idempotencyKey = {
  kind: 'text',
  max: limits.nameCharactersMax,
  required: true,
  about: 'your own key: the same call again under it changes nothing',
} as const;
const targetKind = {
  kind: 'choice',
  choices: ['principal', 'session'],
  about: 'what the recipient names (default principal)',
} as const;
const scopeOptional = {
  project: { kind: 'name', about: 'the project; default: this session\u2019s, or that of the directory' },
  recipient: { kind: 'name', about: 'the inbox; default: this session\u2019s own' },
} as const;

const howMany = (byDefault: number): string => `how many at most (default ${byDefault})`;

export const sendFields = {
  project,
  sender: {
    kind: 'text',
    max: limits.nameCharactersMax,
    required: true,
    about: 'who sends: a label, provenance and no identity',
  },
  recipient,
  idempotency_key: idempotencyKey,
  payload: {
    kind: 'json',
    required: true,
    about: 'the body: text, or any JSON value with content_type application/json',
  },
  target_kind: targetKind,
  intended_session: { kind: 'name', about: 'the one session of the principal that is meant' },
  content_type: { kind: 'choice', choices: ['text/plain', 'application/json'], about: 'default text/plain' },
  privacy: { kind: 'choice', choices: ['private', 'team'], about: 'default private' },
  correlation_id: {
    kind: 'text',
    max: limits.idCharactersMax,
    about: 'links messages; changes nothing else',
  },
  reply_to: { kind: 'text', max: limits.idCharactersMax, about: 'the message this answers' },
  task_id: {
    kind: 'text',
    max: limits.idCharactersMax,
    about: 'the task this belongs to; new work takes a new one',
  },
  peer: {
    kind: 'text',
    max: limits.nameCharactersMax,
    about: 'the machine of a peer: its petname or key, or self for your other machines',
  },
  status: {
    kind: 'choice',
    choices: ['update', 'needs_input', 'result', 'failed', 'canceled'],
    about: 'of the task; an update wakes nobody',
  },
  expires_at: { kind: 'instant', about: 'from then on it waits no more (ISO 8601 with zone)' },
  quiet: { kind: 'flag', about: 'a courtesy that needs no turn: wakes nobody' },
  fallback_to_principal: {
    kind: 'flag',
    about: 'where the session refuses, leave it with its principal, still meant for that session alone',
  },
  expected_generation: {
    kind: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    about: 'hand over to this registration of the session only',
  },
  reply_wait_ms: {
    kind: 'integer',
    min: 0,
    max: limits.replyWaitMsMax,
    about: 'wait as long for the first message that answers this one',
  },
} as const satisfies Fields;

export const pollFields = {
  project,
  recipient: { kind: 'name', about: 'the inbox: a principal, or a session id' },
  receipts: { kind: 'flag', about: 'receipts of what a sender sent, in place of mail' },
  sender: { kind: 'text', max: limits.nameCharactersMax, about: 'whose sent mail, with receipts' },
  cursor: { kind: 'text', max: limits.cursorCharactersMax, about: 'next_cursor of the last poll' },
  limit: {
    kind: 'integer',
    min: 1,
    max: limits.pollCountMax,
    about: howMany(limits.pollCountDefault),
  },
  wait_ms: {
    kind: 'integer',
    min: 0,
    max: limits.pollWaitMsMax,
    about: 'wait as long for a first event (default 0, of a watch 30000)',
  },
} as const satisfies Fields;

export const fetchFields = {
  project,
  recipient,
  message_id: messageId,
  target_kind: targetKind,
} as const satisfies Fields;

export const intakeFields = {
  project,
  recipient,
  message_id: messageId,
  idempotency_key: idempotencyKey,
  state: { kind: 'choice', choices: ['fetched', 'ingested'], required: true, about: 'what really happened' },
} as const satisfies Fields;

export const ackFields = {
  project,
  recipient,
  message_id: messageId,
  idempotency_key: idempotencyKey,
  host_accept_id: { kind: 'text', max: limits.idCharactersMax, about: 'the host acceptance this answers' },
} as const satisfies Fields;

const detail = {
  kind: 'text',
  max: limits.detailCharactersMax,
  about: 'in your own words',
} as const;

export const dispositionFields = {
  project,
  recipient,
  message_id: messageId,
  idempotency_key: idempotencyKey,
  value: { kind: 'choice', choices: dispositions, required: true, about: 'what becomes of the work' },
  detail,
} as const satisfies Fields;

export const activationFields = {
  project,
  recipient,
  message_id: messageId,
  idempotency_key: idempotencyKey,
  value: { kind: 'choice', choices: activations, required: true, about: 'what became of waking the session' },
  detail,
} as const satisfies Fields;

export const receiptsFields = { project, recipient, message_id: messageId } as const satisfies Fields;

export const discoverFields = {
  project,
  limit: {
    kind: 'integer',
    min: 1,
    max: limits.discoverCountMax,
    about: howMany(limits.discoverCountDefault),
  },
  peer: {
    kind: 'text',
    max: limits.nameCharactersMax,
    about: 'sessions on the machines of a peer: its petname or key, or self',
  },
  detail: { kind: 'flag', about: 'with bell, its state, waiting mail and the time of connection' },
} as const satisfies Fields;

export const receiveFields = {
  notification_id: { kind: 'text', max: limits.idCharactersMax, about: 'of the notice; advisory' },
  limit: {
    kind: 'integer',
    min: 1,
    max: limits.receiveCountMax,
    about: `messages at most (default ${limits.receiveCountDefault})`,
  },
  ...scopeOptional,
} as const satisfies Fields;

export const acknowledgeFields = {
  messages: {
    kind: 'list',
    required: true,
    about: `1 to ${limits.acknowledgeCountMax} receipts, verbatim as received`,
  },
  ...scopeOptional,
} as const satisfies Fields;

export const historyFields = {
  peer: {
    kind: 'text',
    max: limits.nameCharactersMax,
    required: true,
    about: 'with whom: a petname, self or a key; else a sender label or a recipient of this machine',
  },
  limit: {
    kind: 'integer',
    min: 1,
    max: limits.receiveCountMax,
    about: `messages at most (default ${limits.receiveCountDefault})`,
  },
  consume: { kind: 'flag', about: 'acknowledge what is returned: a shortcut that may lose the response' },
  ...scopeOptional,
} as const satisfies Fields;

export const statusFields = {
  msg_id: { ...messageId, about: 'the id that a send or a receipt named' },
  sender: { kind: 'text', max: limits.idCharactersMax, about: 'local, or the public key of another machine' },
} as const satisfies Fields;

export const pendingFields = {
  discard: {
    kind: 'text',
    max: limits.idCharactersMax,
    about: 'end the way of this message: it goes out no more',
  },
} as const satisfies Fields;

export const failedFields = {
  action: {
    kind: 'choice',
    choices: ['list', 'read', 'retry', 'discard'],
    required: true,
    about: 'what to do with notices that failed',
  },
  id: { kind: 'text', max: limits.idCharactersMax, about: 'which one; list shows them' },
} as const satisfies Fields;

export const summaryFields = {
  summary: {
    kind: 'text',
    min: 0,
    max: limits.workSummaryCharactersMax,
    required: true,
    about: 'what this session works on, for others to see; empty clears it',
  },
} as const satisfies Fields;

export const cancelFields = {
  recipient,
  task_id: { kind: 'text', max: limits.idCharactersMax, required: true, about: 'the task to cancel' },
  target_kind: targetKind,
  project,
  peer: {
    kind: 'text',
    max: limits.nameCharactersMax,
    about: 'the machine of a peer that the recipient is on',
  },
  reason: { kind: 'text', max: limits.detailCharactersMax, about: 'the text (default canceled)' },
} as const satisfies Fields;

export type SendRequest = ValuesOf<typeof sendFields>;
export type PollRequest = ValuesOf<typeof pollFields>;
export type FetchRequest = ValuesOf<typeof fetchFields>;
export type IntakeRequest = ValuesOf<typeof intakeFields>;
export type AckRequest = ValuesOf<typeof ackFields>;
export type ReceiptsRequest = ValuesOf<typeof receiptsFields>;
export type ReceiveRequest = ValuesOf<typeof receiveFields>;
export type AcknowledgeRequest = ValuesOf<typeof acknowledgeFields>;
export type DispositionRequest = ValuesOf<typeof dispositionFields>;
export type ActivationRequest = ValuesOf<typeof activationFields>;
export type HistoryRequest = ValuesOf<typeof historyFields>;
export type StatusRequest = ValuesOf<typeof statusFields>;
export type FailedRequest = ValuesOf<typeof failedFields>;
export type CancelRequest = ValuesOf<typeof cancelFields>;

/** Of the hook of Codex that says which thread a server is of. */
export const bindFields = {
  thread_id: {
    kind: 'text',
    max: limits.idCharactersMax,
    required: true,
    about: 'the thread of this server',
  },
  cwd: { kind: 'text', min: 0, max: limits.pathCharactersMax, about: 'its directory' },
} as const satisfies Fields;

/** Hints of a host's hook; any text, since a host leaves what its event does not have as it is. */
export const hostEventFields = {
  event: { kind: 'text', max: limits.idCharactersMax, required: true, about: 'the event that fired' },
  session_id: { kind: 'text', min: 0, max: limits.idCharactersMax, about: 'of the session it fired in' },
  source: { kind: 'text', min: 0, max: limits.idCharactersMax, about: 'why a session starts' },
  agent_id: { kind: 'text', min: 0, max: limits.idCharactersMax, about: 'of a sub-agent' },
} as const satisfies Fields;
