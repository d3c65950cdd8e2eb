// What happened, table by table, for the live view.

import type { MessageReceiptKind, OutboxFact, PeerFact } from '../protocol/receipts.ts';

/** Payload-free. */
export interface FeedItem {
  at: string;
  kind:
    | 'message'
    /** A chain of answers from other machines is so long that its messages wake nobody; once for each chain. */
    | 'looped'
    | 'attempt'
    | 'host_accept'
    | 'notice'
    | MessageReceiptKind
    /** Of mail to other machines. */
    | (OutboxFact | PeerFact)['receipt_kind']
    | 'connected'
    | 'disconnected'
    | 'superseded';
  message_id?: string;
  project: string;
  /** The sender, or the principal that did it. */
  from?: string;
  /** Of a message from another machine: its verified key. What it calls itself is `from`. */
  peer_key?: string;
  to: string;
  detail: string;
}

export type FeedPosition = Readonly<
  Record<'message' | 'looped' | 'attempt' | 'host_accept' | 'listener_row' | 'receipt' | 'presence', number>
>;

export interface Feed {
  end(): FeedPosition;
  since(position: FeedPosition): { items: FeedItem[]; position: FeedPosition };
}
