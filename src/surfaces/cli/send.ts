// `postbell send`: the short form for people. One sentence of what is known, and no more.

import type { SendAnswer } from '../../mailbox/send.ts';
import { send } from '../../mailbox/send.ts';
import { Fault, isRefusal, type Result } from '../../protocol/errors.ts';
import { type Fields, readFields } from '../../protocol/fields.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import type { Presence } from '../../protocol/session.ts';
import { type CliContext, commandSendFields } from './commands.ts';

export const shortSendFields = {
  project: { kind: 'name', about: 'default: that of the current directory' },
  reply_to: { kind: 'text', max: limits.idCharactersMax, about: 'the message this answers' },
  peer: { kind: 'text', max: limits.nameCharactersMax, about: 'the machine of a peer that RECIPIENT is on' },
} as const satisfies Fields;

export async function shortSend(
  context: CliContext,
  given: {
    recipient: string;
    body: string;
    accountName: string;
    key: string;
    session: boolean;
    replyWaitMs: number | undefined;
    flags: Record<string, unknown>;
  },
): Promise<Result<SendAnswer>> {
  const request = readFields(commandSendFields, {
    ...given.flags,
    project: given.flags.project ?? (await context.project()),
    sender: context.caller.principal ?? given.accountName,
    recipient: given.recipient,
    idempotency_key: given.key,
    payload: given.body,
    ...(given.session && { target_kind: 'session' }),
    ...(given.replyWaitMs !== undefined && { reply_wait_ms: given.replyWaitMs }),
  });
  return isRefusal(request) ? request : send(context.desk, request, context.caller);
}

const known: Readonly<Record<Presence, string>> = {
  live: 'a live session of it with a bell is connected; whether it was rung or read is not known yet',
  full: 'its session is live and takes no more for now; the message waits',
  deaf: 'its session is live but cannot be rung; the message waits until it looks',
  away: 'its session has not been heard of lately; the message waits',
  gone: 'its last session has disconnected; the message waits',
  unknown: 'no session ever registered under that name in this project; the message waits',
  not_checked: 'it is not known whether a session was told; the message waits',
};

/** Where else a session of that name is live, for whoever sent from the wrong directory. */
export function liveElsewhere({ desk }: CliContext, answer: SendAnswer): string[] {
  if (answer.recipient_presence !== 'unknown') return [];
  try {
    return desk.store.read((tx) =>
      tx.sessions.projectsOf(answer.recipient, desk.clock.nowMs(), limits.elsewhereCountMax),
    );
  } catch (error) {
    // The send stands; a hint is no reason to call it failed.
    if (error instanceof Fault) return [];
    throw error;
  }
}

/** What the acceptance of each kind stands on. */
const acceptance = (adapterKind: string): string =>
  adapterKind === 'claude-listener'
    ? 'a notice of it is queued for the listener of its session'
    : 'the host of its session accepted it or a notice of it';

/** Why mail asks for no turn of its reader. */
const needsNoTurn = { progress: 'it is progress', loop_guard: 'it asks for no answer' } as const;

/** What a person may rely on after a send. */
/** @param carried whether a relay is named by which it can go to another machine */
export function sentence(answer: SendAnswer, elsewhere: readonly string[], carried: boolean): string {
  if (answer.peer !== undefined) return sentToPeer(answer, carried);
  const stored = `Stored ${answer.message_id} for ${quoted(answer.recipient)} in ${quoted(answer.project)}`;
  if (answer.native_delivery !== undefined)
    return `${stored}; ${acceptance(answer.native_delivery.adapter_kind)}, which does not mean that it was read.`;
  if (answer.quieted === 'taken_in') return `${stored}; it has been taken in.`;
  if (answer.quieted !== undefined)
    return `${stored}; ${needsNoTurn[answer.quieted]}: it rings nobody and waits.`;
  const hint =
    elsewhere.length === 0
      ? ''
      : `. One is live in ${elsewhere.map(quoted).join(', ')}: send from there, or with --project`;
  return `${stored}; ${known[answer.recipient_presence ?? 'not_checked']}${hint}.`;
}

/** What is known of whom it is for on the other machine. */
const knownThere: Readonly<Record<Presence, string>> = {
  live: 'a session of it was live there',
  full: 'a session of it was live there that took no more',
  deaf: 'a session of it was live there that cannot be rung',
  away: 'that machine had not been heard of lately',
  gone: 'that machine had said that it ends',
  unknown: 'no session of it was known there',
  not_checked: 'nothing is known of it there',
};

function sentToPeer(answer: SendAnswer, carried: boolean): string {
  const {
    message_id,
    recipient,
    project,
    peer,
    recipient_presence = 'not_checked',
    presence_age_ms,
    live_alternative,
  } = answer;
  const stored = `Stored ${message_id} here, for ${quoted(recipient)} in ${quoted(project)} at ${quoted(peer ?? '')}; ${carried ? 'it goes out by itself' : 'POSTBELL_RELAYS names no relay here, so that it goes out only by a router that was started with one'}`;
  const known =
    presence_age_ms === undefined
      ? ', once it is known where that machine is reached. Nothing was ever heard of it: where that stays so, postbell peer pair with its address'
      : `. When last heard, ${knownThere[recipient_presence]}`;
  const other =
    live_alternative === undefined
      ? ''
      : ` (live instead: session ${quoted(live_alternative.session_id)} of ${quoted(live_alternative.principal)})`;
  return `${stored}${known}${other}. postbell inbox status --message-id ${message_id} says what became of it.`;
}

/** How the wait for an answer ended; its text is read like all other mail. */
export const answered = (reply: SendAnswer['reply']): string =>
  reply == null
    ? 'No answer yet; one may still come.'
    : `Answered by ${reply.message_id}; postbell read shows it.`;
