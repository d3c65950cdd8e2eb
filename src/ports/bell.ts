// A bell is one adapter for one host: the only code that talks to that host in order to ring.

import type { Json } from '../protocol/json.ts';
import type { AdapterKind, Bell as BellName, HostKind } from '../protocol/session.ts';

export interface BellDescription {
  bell: BellName;
  adapterKind: AdapterKind;
  hostKind: HostKind;
}

export interface RingItem {
  notification_id: string;
  /** Rendered by the one renderer of notices. */
  text: string;
  /** The session that is rung. */
  session_id: string;
  /** Of the router's hand-off; absent where the session's own notifier rings. */
  attempt?: { attempt_id: string; delivery_id: string };
}

export type RingOutcome =
  /** On the evidence that the adapter kind stands for, and no more. */
  | { outcome: 'accepted'; content: 'notice' | 'full'; receipt: Json }
  | { outcome: 'rejected'; code: 'adapter_rejected' | 'adapter_error' }
  /** The host may or may not have taken it, or the ring came too late to count. */
  | { outcome: 'unknown' };

export interface Bell {
  describe(): BellDescription;
  /** A throw means a defect or a fault of the store, never an outcome. */
  ring(item: RingItem): Promise<RingOutcome>;
}
