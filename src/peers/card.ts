// The card of this machine: which of its sessions a peer may see, signed, and sealed to each peer. And what a peer's card says here.

import { verifyRecord } from '../crypto/record.ts';
import { openCard } from '../crypto/sealed-card.ts';
import type { Identity } from '../ports/account.ts';
import type { QueuePresence } from '../ports/relay.ts';
import type { Tx } from '../ports/store.ts';
import { utf8Bytes } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import { readFields } from '../protocol/wire/decode.ts';
import { readHeader } from '../protocol/wire/header.ts';
import { wireLimits } from '../protocol/wire/limits.ts';
import type { CardSession } from '../protocol/wire/record.ts';

/** The live sessions of this machine, the newest first, as many as a card holds. */
export function ownSessions(tx: Tx, nowMs: number): CardSession[] {
  const cards = tx.sessions.cardsAnywhere(nowMs, wireLimits.cardSessionsMax).map(
    (card): CardSession => ({
      session_id: card.session_id,
      principal: card.principal_id,
      project: card.project,
      host_kind: card.host_kind,
      directory: labelOf(card.project),
      git: '',
      work_summary: card.work_summary ?? '',
      bell: card.bell,
      generation: card.generation,
    }),
  );
  while (utf8Bytes(JSON.stringify(cards)) > wireLimits.cardSessionsBytesMax) cards.pop();
  return cards;
}

/** The base name that an automatic project id begins with; a project that was named otherwise shows none. */
const labelOf = (project: string): string => /^(.{1,60})~[0-9a-f]{32}$/.exec(project)?.[1] ?? '';

/** Whose card it is. */
export interface CardOf {
  peer_key: string;
  device: string;
}

/**
 * Takes what a relay says of a device. A card that does not verify, is older than the presence limit, or older than the one seen last
 * is left alone; the age and whether its owner closed it are the relay's word.
 * @returns whether the device came to be live by it
 */
export function takePresence(
  tx: Tx,
  of: CardOf,
  identity: Identity,
  said: QueuePresence,
  nowMs: number,
): boolean {
  const before = tx.devices.get(of.peer_key, of.device);
  if (before === undefined) return false;
  tx.devices.looked({ ...of, looked_ms: nowMs, age_ms: said.age_ms, gone: said.gone });
  const card = said.card === undefined ? undefined : readCard(said.card, of, identity, nowMs);
  if (card !== undefined && card.card_ms >= (before.card_ms ?? 0)) tx.devices.card({ ...of, ...card });
  const wasLive =
    before.looked_ms !== null && before.age_ms !== null && !before.gone && before.age_ms < limits.peerLiveMs;
  return !wasLive && !said.gone && said.age_ms < limits.peerLiveMs;
}

function readCard(card: Uint8Array, of: CardOf, identity: Identity, nowMs: number) {
  const record = openCard({ card, seed: identity.seed, owner: of.peer_key, deviceId: of.device });
  if (typeof record === 'string') return undefined;
  const read = readHeader(record);
  if (typeof read === 'string' || read.header.type !== 'card' || read.header.from !== of.peer_key)
    return undefined;
  const { time_ms } = read.header;
  const tooOld = nowMs - time_ms > limits.peerAwayMs || time_ms - nowMs > limits.signedAheadMs;
  if (tooOld || !verifyRecord(record)) return undefined;
  const fields = readFields(record);
  if (typeof fields === 'string' || fields.type !== 'card') return undefined;
  return { card_ms: time_ms, sessions: fields.fields.sessions };
}
