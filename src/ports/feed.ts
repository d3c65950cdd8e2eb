// What happened, table by table, for the live view.

import type { MessageReceiptKind } from '../protocol/receipts.ts';

/** Payload-free. */
export interface FeedItem {
  at: string;
  kind:
    | 'message'
    | 'attempt'
    | 'host_accept'
    | 'notice'
    | MessageReceiptKind
    | 'connected'
    | 'disconnected'
    | 'superseded';
  message_id?: string;
  project: string;
  /** The sender, or the principal that did it. */
  from?: string;
  to: string;
  detail: string;
}

export type FeedPosition = Readonly<
  Record<'message' | 'attempt' | 'host_accept' | 'listener_row' | 'receipt' | 'presence', number>
>;

export interface Feed {
  end(): FeedPosition;
  since(position: FeedPosition): { items: FeedItem[]; position: FeedPosition };
}
