// `postbell read`: the mail that waits for a person, as text. What was printed is recorded as fetched, and no more; the
// mail of a name that was given is looked at and left waiting.

import { intake } from '../../mailbox/intake.ts';
import { type ReceiveAnswer, receive } from '../../mailbox/receive.ts';
import type { ReceivedMessage } from '../../protocol/delivery.ts';
import { isRefusal, type Result } from '../../protocol/errors.ts';
import { type Fields, readFields } from '../../protocol/fields.ts';
import { type Json, quoted } from '../../protocol/json.ts';
import { receiveFields } from '../../protocol/requests.ts';
import { inertLine } from '../../protocol/untrusted.ts';
import type { CliContext } from './commands.ts';

export const shortReadFields = {
  project: { kind: 'name', about: 'default: that of the current directory' },
} as const satisfies Fields;

/** `show` resolves once the text is written: only then is a message recorded. @returns the last line. */
export async function shortRead(
  context: CliContext,
  given: { name: string | undefined; accountName: string; flags: Record<string, unknown> },
  show: (text: string) => Promise<void>,
): Promise<Result<string>> {
  const { desk, caller } = context;
  const recipient = given.name ?? (caller.session === undefined ? given.accountName : undefined);
  const request = readFields(receiveFields, {
    ...given.flags,
    project: given.flags.project ?? (await context.project()),
    ...(recipient !== undefined && { recipient }),
  });
  if (isRefusal(request)) return request;
  const inbox = `${quoted(recipient ?? caller.principal ?? '')} in ${quoted(request.project ?? '')}`;
  for (let shown = 0; ; ) {
    const answer = receive(desk, request, caller);
    if (isRefusal(answer)) return answer;
    for (const message of answer.messages) {
      await show(`${asText(message)}\n\n`);
      shown += 1;
      const taken = given.name === undefined ? await takeIn(context, message) : undefined;
      if (isRefusal(taken)) return taken;
    }
    const left = given.name !== undefined;
    if (!left && answer.messages.length > 0) continue;
    const whole =
      shown === 0
        ? `No mail waits for ${inbox}`
        : `${counted(shown)} for ${inbox}; ${left ? 'left waiting' : 'recorded as fetched'}`;
    return `${whole}.${others(answer)}`;
  }
}

const takeIn = ({ desk, caller }: CliContext, { project, recipient, message_id }: ReceivedMessage) =>
  intake(
    desk,
    { project, recipient, message_id, idempotency_key: 'postbell read', state: 'fetched' },
    caller,
  );

const counted = (count: number): string => (count === 1 ? '1 message' : `${count} messages`);

/** What was not shown, and where else mail waits. */
function others({ remaining, elsewhere }: ReceiveAnswer): string {
  const rows = elsewhere.map((row) => `${row.waiting} in ${quoted(row.project)}`);
  return [
    ...(remaining === 0 ? [] : [` ${remaining} more not shown.`]),
    ...(rows.length === 0 ? [] : [` Elsewhere: ${rows.join(', ')}.`]),
  ].join('');
}

/** Routing in one line, the body indented: a body cannot pass for the next message. */
function asText({ payload, ...message }: ReceivedMessage): string {
  const notes = [
    message.message_id,
    ...(message.reply_to === undefined ? [] : [`answers ${quoted(message.reply_to)}`]),
    ...(message.status === undefined ? [] : [message.status]),
    ...(message.task_id === undefined ? [] : [`task ${quoted(message.task_id)}`]),
  ];
  return `From ${senderOf(message)} at ${message.created_at} (${notes.join(', ')}):\n${bodyOf(payload)}`;
}

/** Of another machine the owner's name for it; what it calls itself is its own word. */
const senderOf = ({ sender, origin }: Omit<ReceivedMessage, 'payload'>): string =>
  origin === undefined
    ? quoted(sender)
    : `${quoted(origin.peer ?? origin.sender_key)} (another machine; says: ${quoted(sender)})`;

function bodyOf(payload: Json): string {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2);
  return text
    .split(/\r?\n/)
    .map((line) => `  ${line.split('\t').map(inertLine).join('\t')}`)
    .join('\n');
}
