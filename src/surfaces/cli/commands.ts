// The commands that answer with one JSON line, each over its use case.

import { ack } from '../../mailbox/ack.ts';
import { acknowledge } from '../../mailbox/acknowledge.ts';
import { activate } from '../../mailbox/activate.ts';
import type { Caller, Desk } from '../../mailbox/desk.ts';
import { dispose } from '../../mailbox/dispose.ts';
import { failed } from '../../mailbox/failed.ts';
import { fetchMessage } from '../../mailbox/fetch.ts';
import { history } from '../../mailbox/history.ts';
import { intake } from '../../mailbox/intake.ts';
import { poll } from '../../mailbox/poll.ts';
import { receipts } from '../../mailbox/receipts.ts';
import { receive } from '../../mailbox/receive.ts';
import { send } from '../../mailbox/send.ts';
import { status } from '../../mailbox/status.ts';
import { watch } from '../../mailbox/watch.ts';
import { discoverSessions } from '../../peers/sessions.ts';
import { isRefusal, type Result } from '../../protocol/errors.ts';
import { type Fields, readFields, type ValuesOf } from '../../protocol/fields.ts';
import { limits } from '../../protocol/limits.ts';
import * as requests from '../../protocol/requests.ts';

/** What a command needs of its process. */
export interface CliContext {
  desk: Desk;
  caller: Caller;
  /** The automatic project of the directory. */
  project(): Promise<string>;
  /** For people: starts a router where none runs, so that what waits for other machines goes out; nothing where no relay is named. */
  startRouter(): Promise<void>;
  /** Prints a line before the answer. */
  print(line: object): void;
}

export interface Command {
  about: string;
  fields: Fields;
  /** What this surface calls a field, where it is not the field's own name. */
  flags?: Readonly<Record<string, string>>;
  /** The field that stands as a word after the command. */
  word?: string;
  /** The field read from stdin, and the switch that says so. */
  stdin?: { field: string; switch: string; isJson?: true };
  example: string;
  run(context: CliContext, input: Record<string, unknown>): Promise<Result<object>>;
}

function command<S extends Fields>(
  given: Omit<Command, 'run' | 'fields'> & { fields: S; projectDefault?: true | 'with peer' },
  run: (context: CliContext, request: ValuesOf<S>) => Result<object> | Promise<Result<object>>,
): Command {
  return {
    ...given,
    run: async (context, input) => {
      const { projectDefault } = given;
      const isDefault = projectDefault === true || (projectDefault !== undefined && input.peer !== undefined);
      const project = input.project ?? (isDefault ? await context.project() : undefined);
      const request = readFields(given.fields, project === undefined ? input : { ...input, project });
      return isRefusal(request) ? request : run(context, request);
    },
  };
}

const scope = '--project shop~1a2b… --recipient reviewer';
const one = `${scope} --message-id msg_01h`;

/** A command may wait longer for a reply than a tool. */
export const commandSendFields = {
  ...requests.sendFields,
  reply_wait_ms: { ...requests.sendFields.reply_wait_ms, max: limits.commandReplyWaitMsMax },
} as const satisfies Fields;

export const commands: Readonly<Record<string, Command>> = {
  'message send': command(
    {
      about: 'store a message and tell the router; with --peer it goes to another machine',
      fields: commandSendFields,
      projectDefault: 'with peer',
      stdin: { field: 'payload', switch: 'payload-stdin' },
      example: `echo 'ready for review' | postbell message send ${scope} --sender me --idempotency-key k1 --payload-stdin`,
    },
    async ({ desk, caller }, request) => {
      const { peer, target_kind, recipient } = request;
      if (peer === undefined || target_kind !== 'session') return send(desk, request, caller);
      const { sessionMeantBy } = await import('../../peers/session-prefix.ts');
      const meant = sessionMeantBy(desk, { peer, recipient });
      return isRefusal(meant) ? meant : send(desk, { ...request, recipient: meant }, caller);
    },
  ),
  'message poll': command(
    {
      about: 'events of one inbox, without payload',
      fields: requests.pollFields,
      example: `postbell message poll ${scope}`,
    },
    ({ desk }, request) => poll(desk, request),
  ),
  'message watch': command(
    {
      about: 'one line at once, another with the first events or after --wait-ms (default 30000)',
      fields: requests.pollFields,
      example: `postbell message watch ${scope} --wait-ms 10000`,
    },
    ({ desk, print }, request) => watch(desk, request, print),
  ),
  'message discover': command(
    {
      about: 'live sessions of one project; with --peer on the machines of a peer',
      fields: requests.discoverFields,
      projectDefault: 'with peer',
      example: 'postbell message discover --project shop~1a2b…',
    },
    ({ desk }, request) => discoverSessions(desk, request),
  ),
  'message fetch': command(
    {
      about: 'one message with its payload; consumes nothing',
      fields: requests.fetchFields,
      example: `postbell message fetch ${one}`,
    },
    ({ desk }, request) => fetchMessage(desk, request),
  ),
  'message intake': command(
    {
      about: 'record that a message was fetched or ingested: ends its waiting',
      fields: requests.intakeFields,
      example: `postbell message intake ${one} --idempotency-key k2 --state ingested`,
    },
    ({ desk, caller }, request) => intake(desk, request, caller),
  ),
  'message ack': command(
    {
      about: 'record an acknowledgement: a fact of its own, ends no waiting',
      fields: requests.ackFields,
      example: `postbell message ack ${one} --idempotency-key k3`,
    },
    ({ desk, caller }, request) => ack(desk, request, caller),
  ),
  'message disposition': command(
    {
      about: 'record what becomes of the work: your own claim, in order',
      fields: requests.dispositionFields,
      example: `postbell message disposition ${one} --idempotency-key k4 --value completed`,
    },
    ({ desk, caller }, request) => dispose(desk, request, caller),
  ),
  'message activation': command(
    {
      about: 'record what became of waking the session',
      fields: requests.activationFields,
      example: `postbell message activation ${one} --idempotency-key k5 --value woken`,
    },
    ({ desk, caller }, request) => activate(desk, request, caller),
  ),
  'message receipts': command(
    {
      about: 'every fact known of one message',
      fields: requests.receiptsFields,
      example: `postbell message receipts ${one}`,
    },
    ({ desk }, request) => receipts(desk, request),
  ),
  'inbox receive': command(
    {
      about: 'the mail that waits; consumes nothing',
      fields: requests.receiveFields,
      projectDefault: true,
      example: 'postbell inbox receive --recipient reviewer',
    },
    ({ desk, caller }, request) => receive(desk, request, caller),
  ),
  'inbox acknowledge': command(
    {
      about: 'end the waiting of exactly these receipts',
      fields: requests.acknowledgeFields,
      stdin: { field: 'messages', switch: 'receipts-stdin', isJson: true },
      projectDefault: true,
      example: `echo '[{"sender":"local","msg_id":"msg_01h"}]' | postbell inbox acknowledge --recipient reviewer --receipts-stdin`,
    },
    ({ desk, caller }, request) => acknowledge(desk, request, caller),
  ),
  'inbox history': command(
    {
      about: 'both directions with one peer, newest last; consumes nothing unless asked',
      fields: requests.historyFields,
      projectDefault: true,
      example: 'postbell inbox history --recipient reviewer --peer alice',
    },
    ({ desk, caller }, request) => history(desk, request, caller),
  ),
  'inbox pending': command(
    {
      about: 'what is on its way to other machines and no relay has taken; --discard ends one of them',
      fields: requests.pendingFields,
      example: 'postbell inbox pending',
    },
    async ({ desk }, { discard: id }) => {
      const { discard, pending } = await import('../../peers/pending.ts');
      return id === undefined ? pending(desk) : discard(desk, id);
    },
  ),
  'inbox failed': command(
    {
      about:
        'notices of this session that its host did not take; retry asks its notifier, if one runs, to ring at once',
      fields: requests.failedFields,
      word: 'action',
      example: 'postbell inbox failed list',
    },
    ({ desk, caller }, request) => failed(desk, request, caller),
  ),
  'inbox status': command(
    {
      about: 'how one message stands, by its id alone',
      fields: requests.statusFields,
      flags: { msg_id: 'message-id' },
      example: 'postbell inbox status --message-id msg_01h',
    },
    ({ desk, caller }, request) => status(desk, request, caller),
  ),
};
