// What `postbell peer` says to people. Names are quoted, whoever gave them.

import type { AskAnswer } from '../../peers/pairing/ask.ts';
import type { Asking } from '../../peers/pairing/calls.ts';
import type { ListAnswer, ShownPeer } from '../../peers/pairing/list.ts';
import type { ShownRequest } from '../../peers/pairing/requests.ts';
import { harmless, quoted } from '../../protocol/json.ts';
import { ownName } from '../../protocol/names/petname.ts';

const compare =
  'Compare fingerprint or pair code with its owner by another road, as by telephone: a claimed name proves nothing.';

/** A claimed name, marked where it could be taken for a known one. */
const claimed = ({ claimed_name, resembles }: Pick<ShownRequest, 'claimed_name' | 'resembles'>): string =>
  `${quoted(claimed_name)} (a name that it claims${
    resembles === undefined
      ? ''
      : resembles === 'self'
        ? '; it looks like this account\u2019s own, and is another key'
        : `; it looks like your peer ${quoted(resembles)}, and is another key`
  })`;

export const requestText = (request: ShownRequest): string =>
  [
    claimed(request),
    `  key          ${request.key}`,
    `  fingerprint  ${request.fingerprint}`,
    `  pair code    ${request.pair_code}`,
    `  arrived      ${request.arrived_at}`,
    `  to accept    postbell peer accept ${request.key} --as NAME`,
    `  to drop      postbell peer reject ${request.key}`,
  ].join('\n');

export function requestsText({ requests }: { requests: ShownRequest[] }): string {
  if (requests.length === 0) return 'No request to pair waits.';
  const count = requests.length === 1 ? '1 request waits.' : `${requests.length} requests wait.`;
  return [count, '', ...requests.flatMap((request) => [requestText(request), '']), compare].join('\n');
}

export const whoText = ({ claimed_name, fingerprint, pair_code }: Asking): string =>
  [
    `${quoted(claimed_name ?? '')} (a name that it claims) asks to pair.`,
    `  fingerprint  ${fingerprint}`,
    ...(pair_code === undefined ? [] : [`  pair code    ${pair_code}`]),
    compare,
    'A peer may write to every session of this account, and what it writes reaches models here.',
  ].join('\n');

export const askedText = ({ name, key, fingerprint, pair_code, known }: AskAnswer): string =>
  name === ownName ? askedOwnText : askedPeerText({ name, key, fingerprint, pair_code, known });

const askedOwnText = [
  'Another machine of this account is asked, so that each learns where the other is reached.',
  'The request goes out by itself, and is tried for 7 days. Mail goes there with: --peer self',
].join('\n');

const askedPeerText = ({ name, key, fingerprint, pair_code, known }: Omit<AskAnswer, 'request_id'>): string =>
  [
    known
      ? `${quoted(name)} is a peer here already; it is asked anew, so that each learns where the other is reached.`
      : `${quoted(name)} is asked to pair, and is no peer yet.`,
    `  key          ${key}`,
    `  fingerprint  ${fingerprint}`,
    `  pair code    ${pair_code}`,
    ...(known
      ? ['The request goes out by itself, and its router answers it.']
      : [
          'Its owner sees the same pair code; compare it by another road. The request goes out by itself, and is tried for 7 days; it',
          'arrives while a router runs there (postbell up, or any session of an agent).',
          'Once its owner has accepted, it stands in: postbell peer list',
        ]),
  ].join('\n');

export const waitingText = (address: string): string =>
  [
    'Your address, for whom you want to pair with:',
    '',
    `  ${address}`,
    '',
    'He types: postbell peer pair ADDRESS --as NAME',
    'Waiting for his request (Ctrl-C ends the wait; a request that comes later stands in postbell peer requests).',
  ].join('\n');

const devices = ({ devices: all }: ShownPeer): string[] =>
  all.map(
    ({ device, state, heard_at, relays }) =>
      `  device ${device.slice(0, 8)}  ${state}, last record ${heard_at}${relays.length === 0 ? '' : `, at ${relays.map(harmless).join(', ')}`}`,
  );

const peerText = (peer: ShownPeer): string[] => [
  `${quoted(peer.name)}  ${peer.state === 'unknown' ? 'never heard of yet' : peer.state}${peer.receipts ? '' : ', receipts off'}`,
  `  key ${peer.key}`,
  `  fingerprint ${peer.fingerprint}`,
  ...devices(peer),
];

export function listText({ peers, asked, requests, refused }: ListAnswer): string {
  const waiting = asked.map(
    ({ name, sent, asked_until, last_error }) =>
      `${quoted(name)}  ${sent ? `a relay took the request; not answered, and sent again until ${asked_until}` : `the request has not gone out${last_error === undefined ? '' : `: ${harmless(last_error)}`}`}`,
  );
  const sections = [
    peers.length === 0 ? ['No peers.'] : peers.flatMap(peerText),
    ...(waiting.length === 0 ? [] : [['Asked, and no peers yet:', ...waiting.map((line) => `  ${line}`)]]),
    ...(requests === 0
      ? []
      : [
          [
            `${requests === 1 ? '1 request waits' : `${requests} requests wait`} for you: postbell peer requests`,
          ],
        ]),
    ...(refused.length === 0
      ? []
      : [
          [
            'The trust gate refused, by its step:',
            ...refused.map(({ step, count, last_at }) => `  ${step}  ${count}, last ${last_at}`),
          ],
        ]),
  ];
  return sections.map((lines) => lines.join('\n')).join('\n\n');
}
