// What a sender may be told of a recipient on another machine: what its card said last, and how old that is. Nothing of it is
// evidence that anybody was reached.

import type { Presence } from '../protocol/session.ts';
import { isOn, type KnownDevice, type Wanted } from './choose-device.ts';

export interface RemotePresence {
  recipient_presence: Presence;
  presence_age_ms?: number;
  live_alternative?: { session_id: string; principal: string };
}

const order: readonly Presence[] = ['live', 'full', 'deaf', 'away', 'gone', 'unknown'];

/** @param device where the message goes, if that is known */
export function remotePresence(
  devices: readonly KnownDevice[],
  device: string | undefined,
  wanted: Wanted,
): RemotePresence {
  const asked = device === undefined ? devices : devices.filter(({ row }) => row.device === device);
  const found = asked.flatMap((one) =>
    one.row.sessions.filter((card) => isOn(card, wanted)).map((card) => stateOn(one, card.bell)),
  );
  const best = order.find((state) => found.includes(state)) ?? unlisted(asked, wanted);
  const [age_ms] = asked.map((one) => one.age_ms ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
  const other = best === 'live' ? undefined : alternative(devices, wanted);
  return {
    recipient_presence: best,
    ...(age_ms !== undefined && Number.isFinite(age_ms) && { presence_age_ms: Math.round(age_ms) }),
    ...(other !== undefined && { live_alternative: other }),
  };
}

/** A session that no card lists any more is gone; of a name that none lists nothing is known. */
function unlisted(asked: readonly KnownDevice[], { target_kind, intended_session }: Wanted): Presence {
  const exact = target_kind === 'session' || intended_session !== undefined;
  return exact && asked.some(({ row }) => row.card_ms !== null) ? 'gone' : 'unknown';
}

function stateOn({ state }: KnownDevice, bell: string): Presence {
  if (state === 'live') return bell === 'none' ? 'deaf' : 'live';
  return state;
}

/** Another session of the project that is live, for mail to a session that is not. */
function alternative(devices: readonly KnownDevice[], wanted: Wanted): RemotePresence['live_alternative'] {
  if (wanted.target_kind !== 'session' && wanted.intended_session === undefined) return undefined;
  const meant = wanted.target_kind === 'session' ? wanted.recipient : wanted.intended_session;
  const live = devices.filter(({ state }) => state === 'live').flatMap(({ row }) => row.sessions);
  const other = live.find(
    (card) => card.project === wanted.project && card.session_id !== meant && card.bell !== 'none',
  );
  return other && { session_id: other.session_id, principal: other.principal };
}
