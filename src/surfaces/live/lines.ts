// One thing that happened, as one line. It says what is known and no more.

import type { Desk } from '../../mailbox/desk.ts';
import { quoted } from '../../protocol/json.ts';

type Item = ReturnType<Parameters<Parameters<Desk['store']['read']>[0]>[0]['feed']['since']>['items'][number];

const short = (id: string | undefined): string => (id === undefined ? '' : `…${id.slice(-6)}`);

/** Local time of day, then what happened. */
export function feedLine(item: Item): string {
  const time = new Date(item.at).toTimeString().slice(0, 8);
  return `${time}  ${said(item)}`;
}

function said(item: Item): string {
  const to = quoted(item.to);
  const message = short(item.message_id);
  switch (item.kind) {
    case 'message':
      return `stored     ${message}  ${quoted(item.from ?? '')} → ${to}  (${item.detail})`;
    case 'attempt':
      return `ringing    ${message}  session ${to}  (${item.detail})`;
    case 'host_accept':
      return `accepted   ${message}  by the host of ${to}: ${item.detail}; not known to be read`;
    case 'intake':
      return `taken in   ${message}  by ${to}  (${item.detail})`;
    case 'ack':
      return `ack        ${message}  by ${to}`;
    case 'connected':
      return `session    ${to} is live as ${quoted(item.from ?? '')}  (bell ${item.detail})`;
    case 'disconnected':
      return `session    ${to} is gone  (${item.detail})`;
    case 'superseded':
      return `session    ${to} was replaced by a newer connection`;
  }
}
