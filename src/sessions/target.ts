// Which live registration gets a delivery, and whether whole or as a notice. Decided inside the transaction that
// starts the attempt.

import { currentReservation } from '../mailbox/reserve.ts';
import type { StoredMessage } from '../ports/mail.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import type { NotifyAnswer } from '../ports/router.ts';
import type { Tx } from '../ports/store.ts';
import { envelopeOf } from '../protocol/delivery.ts';
import { type Json, utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { takesNoMore } from './attempts.ts';
import { namesOf } from './principals.ts';

export interface Target {
  connection: ConnectionRow;
  /** The first id of its session, by which its reservation is named. */
  sessionRoot: string;
  /** The whole message, for a host that may be handed it; else it gets a notice. */
  full?: Json;
}

type Found = Target | { answer: NotifyAnswer };

const not = (reason: NonNullable<NotifyAnswer['reason']>): { answer: NotifyAnswer } => ({
  answer: { delivered: false, reason },
});

/** Mail that needs no turn: progress, also where something newer replaced it; else held by the loop guard. */
function quietedAs({ message, waiting }: StoredMessage): 'progress' | 'loop_guard' {
  return message.status === 'update' || message.quiet || !waiting ? 'progress' : 'loop_guard';
}

/** Past its time; superseded mail has ended otherwise. */
const isExpired = ({ waiting, superseded_by }: StoredMessage): boolean =>
  !waiting && superseded_by === undefined;

/** What came from another machine is only ever announced. */
const isRemote = ({ message }: StoredMessage): boolean => message.origin !== undefined;

/** The exact session: an absent, deaf or busy one is a failure with its reason. */
export function sessionTarget(
  tx: Tx,
  stored: StoredMessage,
  expectedGeneration: number | undefined,
  nowMs: number,
): Found {
  if (isExpired(stored)) return not('expired');
  const { message } = stored;
  const whole = isRemote(stored) ? undefined : wholeOf(tx, stored);
  if (whole === undefined && !isRemote(stored)) return not('native_message_too_large');
  const ids = tx.identity.chain(message.recipient);
  const registered = tx.sessions.registered(message.project, ids);
  if (registered === undefined) return not('never_registered');
  const live = tx.sessions.live(message.project, ids, nowMs);
  const { session_id, generation } = live ?? registered;
  const asExpected = session_id === message.recipient && generation === expectedGeneration;
  if (expectedGeneration !== undefined && !asExpected) return not('generation_changed');
  if (live === undefined) return not('not_live');
  if (!stored.attention || !stored.waiting)
    return { answer: { delivered: true, quieted: quietedAs(stored) } };
  if (live.bell === 'none') return not('no_bell');
  if (takesNoMore(tx, live)) return not('busy');
  const full = takesWhole(live) ? whole : undefined;
  return { connection: live, sessionRoot: firstOf(ids), ...(full !== undefined && { full }) };
}

/** The newest live session of the principal that has a bell, if the delivery may be handed over at all. */
export function principalTarget(tx: Tx, stored: StoredMessage, nowMs: number): Found {
  const { message } = stored;
  if (isExpired(stored)) return not('expired');
  if (!stored.attention || !stored.waiting)
    return { answer: { delivered: false, quieted: quietedAs(stored) } };
  const names = namesOf(tx, message.recipient);
  const live =
    message.intended_session === undefined
      ? liveUnder(tx, message.project, names, nowMs)
      : tx.sessions.live(message.project, tx.identity.chain(message.intended_session), nowMs);
  if (live === undefined || !isOrWasUnder(tx, live, names)) return not('not_live');
  if (live.bell === 'none') return not('no_bell');
  const checkpoint = tx.sessions.checkpoint(message.project, live.principal_id);
  if (checkpoint === undefined || stored.event_seq <= checkpoint) return not('before_checkpoint');
  const full = takesWhole(live) && !isRemote(stored) ? wholeOf(tx, stored) : undefined;
  const sessionRoot = firstOf(tx.identity.chain(live.session_id));
  if (full === undefined && currentReservation(tx, sessionRoot, nowMs) !== undefined) return not('covered');
  if (takesNoMore(tx, live)) return not('busy');
  return { connection: live, sessionRoot, ...(full !== undefined && { full }) };
}

/** What is meant for one session stays with it when it has come back under another principal. */
function isOrWasUnder(
  tx: Tx,
  { project, session_id, principal_id }: ConnectionRow,
  names: readonly string[],
): boolean {
  if (names.includes(principal_id)) return true;
  const ids = tx.identity.chain(session_id);
  return names.some((name) =>
    tx.sessions.connectionsOf(project, name).some((one) => ids.includes(one.session_id)),
  );
}

const firstOf = (chain: readonly string[]): string => chain[0] as string;

/** Only a channel shows a whole message; every other host reads it from the inbox. */
const takesWhole = (connection: ConnectionRow): boolean => connection.bell === 'channel';

/** The envelope with its body; undefined where it is too large for any host. */
function wholeOf(tx: Tx, { message }: StoredMessage): Json | undefined {
  const payload = JSON.parse(tx.messages.payload(message.message_id).json) as Json;
  const envelope = envelopeOf(message, payload) as unknown as Json;
  return utf8Bytes(JSON.stringify(envelope)) <= limits.nativeEnvelopeBytesMax ? envelope : undefined;
}

function liveUnder(
  tx: Tx,
  project: string,
  names: readonly string[],
  nowMs: number,
): ConnectionRow | undefined {
  for (const name of names) {
    const live = tx.sessions.liveOfPrincipal(project, name, nowMs);
    if (live !== undefined) return live;
  }
  return undefined;
}
