// The local router as its callers see it: a cache of who is alive. Durable actions never need it.

import type { NativeDelivery, UnavailableReason } from '../protocol/delivery.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { Card } from '../protocol/session.ts';

/** What became of one delivery as far as the router knows. */
export interface NotifyAnswer {
  /** True where a host accepted it, or where an exact session is live and nothing needs handing over (`quieted`). */
  delivered: boolean;
  /** Why not, where it was not delivered. */
  reason?: UnavailableReason | ErrorCode | 'covered' | 'before_checkpoint' | 'dispatched';
  /** A host was asked, now or before, and has not refused: whether it was reached is not known. */
  unclear?: true;
  quieted?: 'progress' | 'loop_guard' | 'taken_in';
  native_delivery?: NativeDelivery;
}

export interface Router {
  /**
   * Tells the router of a committed delivery. For a principal it answers as soon as the router knows; for an exact
   * session it waits for the host. Fault `router_unreachable` before the call was written, `router_timeout` after.
   */
  notify(call: {
    project: string;
    delivery_id: string;
    /** Only this registration of the exact session may get it. */
    expected_generation?: number;
    wait: boolean;
  }): Promise<NotifyAnswer>;
  /** Live sessions of one project. Faults as `notify`. */
  discover(call: { project: string; limit: number; detail?: boolean }): Promise<Card[]>;
}
