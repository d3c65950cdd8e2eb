// The verbs of `postbell peer`, as they are typed and explained.

import type { Fields } from '../../protocol/fields.ts';

interface VerbRow {
  /** After `postbell peer`. */
  words: string;
  about: string;
  fields?: Fields;
  /** Besides --json. */
  switches?: readonly string[];
  positionalsMax: number;
}

const as = { as: { kind: 'text', max: 64, about: 'how the peer is called here' } } as const satisfies Fields;

const table = {
  pair: {
    words: 'pair [ADDRESS] [--as NAME]',
    about: 'ask whose address it is to pair; or print the own address and wait for a request',
    fields: as,
    positionalsMax: 1,
  },
  requests: { words: 'requests', about: 'who asks to be trusted', positionalsMax: 0 },
  accept: {
    words: 'accept KEY --as NAME',
    about: 'trust one that asks; KEY is its full key or fingerprint',
    fields: as,
    positionalsMax: 1,
  },
  reject: { words: 'reject KEY', about: 'drop its request', positionalsMax: 1 },
  list: {
    words: 'list',
    about: 'peers and their devices, whom this account asked, and what the gate refused',
    positionalsMax: 0,
  },
  add: { words: 'add NAME KEY', about: 'trust a key without asking it', positionalsMax: 2 },
  remove: {
    words: 'remove NAME [--rotate]',
    about: 'trust it no more; --rotate also leaves the queue that it knows',
    switches: ['rotate'],
    positionalsMax: 1,
  },
} as const satisfies Record<string, VerbRow>;

export type PeerVerb = keyof typeof table;

export const peerVerbs: Readonly<Record<PeerVerb, VerbRow>> = table;

export const isPeerVerb = (word: string): word is PeerVerb => Object.hasOwn(table, word);
