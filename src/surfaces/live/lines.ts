// One thing that happened, as one line. It says what is known and no more.

import type { FeedItem } from '../../ports/feed.ts';
import { quoted } from '../../protocol/json.ts';
import { type DisconnectReason, isUnheard } from '../../protocol/session.ts';

const shortMessage = (id: string | undefined): string => (id === undefined ? '' : `…${id.slice(-6)}`);

/** Host session ids are long and random at both ends; a name that a person chose is short enough to stand whole. */
const shortSession = (id: string): string => quoted(id.length > 16 ? `${id.slice(0, 8)}…` : id);

/** How a key of another machine is shown: as the owner calls it. */
export type NameOfKey = (key: string) => string;

/** Local time of day, then what happened. */
export function feedLine(item: FeedItem, nameOf: NameOfKey = (key) => key): string {
  const time = new Date(item.at).toTimeString().slice(0, 8);
  return `${time}  ${said(item, nameOf)}`;
}

/** Of another machine its owner here says who it is; what it calls itself is its own word. */
function senderOf({ from = '', peer_key }: FeedItem, nameOf: NameOfKey): string {
  return peer_key === undefined
    ? quoted(from)
    : `${quoted(nameOf(peer_key))} (another machine; says: ${quoted(from)})`;
}

/** The label of an automatic project id, and enough of its hash to tell two apart. */
export const shortProject = (id: string): string =>
  quoted(id.replace(/^(.*~[0-9a-f]{4})[0-9a-f]{28}$/, '$1…'));

/** How a peer says that the recipient stood there. */
const there: Readonly<Record<string, string>> = { unknown: 'not known', nearly_full: 'nearly full' };

function said(item: FeedItem, nameOf: NameOfKey): string {
  const message = shortMessage(item.message_id);
  const session = shortSession(item.to);
  switch (item.kind) {
    case 'message':
      return `stored    ${message}  ${senderOf(item, nameOf)} → ${quoted(item.to)}  in ${shortProject(item.project)}`;
    case 'looped':
      return `looping   ${message}  ${senderOf(item, nameOf)} → ${quoted(item.to)}  (answer ${item.detail} in a row: kept, and wakes nobody; said once for this chain)`;
    case 'notice':
      return `notice             session ${session}  for its listener (messages: ${item.detail})`;
    case 'attempt':
      return `handing   ${message}  session ${session}  (begun; bell ${item.detail})`;
    case 'host_accept':
      return `handed    ${message}  session ${session}  (${item.detail}; not known to be read)`;
    case 'intake':
      return `taken in  ${message}  by ${quoted(item.to)}  (${item.detail})`;
    case 'ack':
      return `ack       ${message}  by ${quoted(item.to)}`;
    case 'disposition':
      return `disposed  ${message}  by ${quoted(item.to)}  (${item.detail})`;
    case 'activation':
      return `activated ${message}  by ${quoted(item.to)}  (${item.detail})`;
    case 'host_activation':
      return `queue     ${message}  of ${quoted(item.to)}  (asked its host to begin a turn: ${item.detail}; not known to be read)`;
    case 'relay_accept':
      return `relayed   ${message}  (the relay ${item.detail} has it; not known to have arrived)`;
    case 'stored':
      return `arrived   ${message}  (stored there: its receiver was ${there[item.detail] ?? item.detail}; not known to be read)`;
    case 'expired':
      return `expired   ${message}  (it goes to no other machine any more)`;
    case 'refused':
      return `ended     ${message}  (it goes to no other machine any more: ${item.detail})`;
    case 'connected':
      return `live      ${quoted(item.from ?? '')}  session ${session}  (bell ${item.detail})`;
    case 'disconnected':
      return `${isUnheard(item.detail as DisconnectReason) ? 'unheard  ' : 'gone     '} ${quoted(item.from ?? '')}  session ${session}  (${item.detail})`;
    case 'superseded':
      return `replaced  ${quoted(item.from ?? '')}  session ${session}  by a newer connection`;
  }
}
