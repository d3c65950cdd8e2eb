// What the store holds, followed commit by commit: the checkers ask here, so that none of them has to read whole tables.
// It is written from the rows alone and shares no query with the product.

import type { Row } from '../../src/store/database.ts';
import type { Change } from './disk.ts';

export interface Delivery {
  id: string;
  seq: number;
  messageId: string;
  project: string;
  recipient: string;
  toSession: boolean;
  intended: string | undefined;
  /** Progress, or sent quiet. */
  progress: boolean;
  /** Found by the loop guard to need no turn. */
  held: boolean;
  /** None of both. */
  worthy: boolean;
  expiresAtMs: number | undefined;
  supersededBy: string | undefined;
  open: boolean;
  /** When it was first taken in, by the wall clock. */
  takenInAtMs: number | undefined;
  intake: boolean;
  acked: boolean;
  hasEvent: boolean;
  accepted: boolean;
}

export interface Reservation {
  id: string;
  seq: number;
  root: string;
  state: string;
  step: number;
  rungAtMs: number;
  expiresAtMs: number;
  covers: Map<string, { rung: boolean }>;
}

export interface Connection {
  id: string;
  seq: number;
  project: string;
  session: string;
  principal: string;
  generation: number;
  bell: string;
  adapter: string;
  leaseMs: number;
  ended: boolean;
  /** How many deliveries there were when it registered. */
  deliveriesBefore: number;
}

export interface Attempt {
  id: string;
  delivery: string;
  connection: string;
  state: string;
  failure: string | undefined;
}

export interface ListenerLine {
  seq: number;
  session: string;
  notice: string;
}

export class Facts {
  readonly messages = new Map<string, Row>();
  readonly deliveries = new Map<string, Delivery>();
  readonly deliveryOfMessage = new Map<string, Delivery>();
  /** By project, in order of arrival. */
  readonly open = new Map<string, Map<string, Delivery>>();
  readonly reservations = new Map<string, Reservation>();
  readonly newest = new Map<string, Reservation>();
  readonly connections = new Map<string, Connection>();
  /** By project and session: the newest registration. */
  readonly registered = new Map<string, Connection>();
  readonly attempts = new Map<string, Attempt>();
  readonly lines = new Map<string, ListenerLine[]>();
  readonly cursors = new Map<string, number>();
  readonly #coveredBy = new Map<string, Reservation[]>();
  readonly #links = new Map<string, string>();
  readonly #groups = new Map<string, string[]>();

  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) this.#apply(change);
  }

  /** Every id of the session, the one without a link first. */
  chain(id: string): readonly string[] {
    return this.#groups.get(id) ?? [id];
  }

  root(id: string): string {
    return this.chain(id)[0] as string;
  }

  connectionOf(project: string, session: string): Connection | undefined {
    let newest: Connection | undefined;
    for (const id of this.chain(session)) {
      const found = this.registered.get(`${project}\n${id}`);
      if (found !== undefined && (newest === undefined || found.seq > newest.seq)) newest = found;
    }
    return newest;
  }

  /** Whether the delivery is for this session under any of its ids, or for its principal and no one else. */
  isFor(delivery: Delivery, session: string, principals: readonly string[]): boolean {
    const chain = this.chain(session);
    if (delivery.toSession) return chain.includes(delivery.recipient);
    if (delivery.intended !== undefined) return chain.includes(delivery.intended);
    return principals.includes(delivery.recipient);
  }

  /** The principal under each of its names: one that was made of an id has as many as the session has ids. */
  namesOf(principal: string): string[] {
    const id = /^(?:claude-session|session)-(.+)$/.exec(principal)?.[1];
    if (id === undefined) return [principal];
    const prefix = principal.slice(0, -id.length);
    return [principal, ...this.chain(id).map((other) => `${prefix}${other}`)];
  }

  /** Whether it waits at this moment. */
  waits({ open, expiresAtMs }: Delivery): boolean {
    return open && (expiresAtMs === undefined || expiresAtMs > this.#nowMs());
  }

  /** What waits for the session, in order of arrival. */
  waiting(project: string, session: string, principals: readonly string[]): Delivery[] {
    const found: Delivery[] = [];
    for (const delivery of this.open.get(project)?.values() ?? [])
      if (this.waits(delivery) && this.isFor(delivery, session, principals)) found.push(delivery);
    return found;
  }

  coveredWaiting(reservation: Reservation): string[] {
    return [...reservation.covers.keys()].filter((id) => {
      const delivery = this.deliveries.get(id);
      return delivery !== undefined && this.waits(delivery);
    });
  }

  /** Whether a notice that covers the delivery was rung for it. */
  isRung(delivery: string): boolean {
    return this.#coveredBy.get(delivery)?.some((one) => one.covers.get(delivery)?.rung) ?? false;
  }

  /** Whether something that the notice covers still waits. */
  waitsFor(notice: string): boolean {
    const reservation = this.reservations.get(notice);
    return reservation !== undefined && this.coveredWaiting(reservation).length > 0;
  }

  #apply({ table, before, after }: Change): void {
    switch (table) {
      case 'message':
        if (after !== undefined) this.messages.set(after.message_id as string, after);
        break;
      case 'delivery':
        this.#delivery(before, after);
        break;
      case 'event': {
        const delivery = this.deliveries.get(after?.delivery_id as string);
        if (delivery !== undefined && after?.event_kind === 'message_available') delivery.hasEvent = true;
        break;
      }
      case 'receipt':
        this.#receipt(after);
        break;
      case 'connection':
        if (after !== undefined) this.#connection(after);
        break;
      case 'attempt':
        if (after !== undefined)
          this.attempts.set(after.attempt_id as string, {
            id: after.attempt_id as string,
            delivery: after.delivery_id as string,
            connection: after.connection_id as string,
            state: after.state as string,
            failure: (after.failure_code as string | null) ?? undefined,
          });
        break;
      case 'host_accept': {
        const delivery = this.deliveries.get(after?.delivery_id as string);
        if (delivery !== undefined) delivery.accepted = true;
        break;
      }
      default:
        this.#applyRinging(table, after);
    }
  }

  #applyRinging(table: string, after: Row | undefined): void {
    if (after === undefined) return;
    switch (table) {
      case 'reservation':
        this.#reservation(after);
        break;
      case 'reservation_cover': {
        const reservation = this.reservations.get(after.notification_id as string);
        if (reservation !== undefined)
          this.#cover(reservation, after.delivery_id as string, after.rung === 1);
        break;
      }
      case 'listener_row': {
        const session = after.session_id as string;
        const line = { seq: after.seq as number, session, notice: after.notification_id as string };
        const lines = this.lines.get(session);
        if (lines === undefined) this.lines.set(session, [line]);
        else lines.push(line);
        break;
      }
      case 'listener_cursor':
        this.cursors.set(after.session_root as string, after.position as number);
        break;
      case 'alias':
        this.#link(after.new_id as string, after.old_id as string);
    }
  }

  #cover(reservation: Reservation, delivery: string, rung: boolean): void {
    if (!reservation.covers.has(delivery)) {
      const others = this.#coveredBy.get(delivery);
      if (others === undefined) this.#coveredBy.set(delivery, [reservation]);
      else others.push(reservation);
    }
    reservation.covers.set(delivery, { rung });
  }

  #delivery(before: Row | undefined, after: Row | undefined): void {
    if (after === undefined) return;
    const id = after.delivery_id as string;
    if (before !== undefined) {
      const delivery = this.deliveries.get(id) as Delivery;
      delivery.open = after.open === 1;
      delivery.supersededBy = (after.superseded_by as string | null) ?? undefined;
      if (!delivery.open) this.open.get(delivery.project)?.delete(id);
      return;
    }
    const message = this.messages.get(after.message_id as string);
    const progress = message?.status === 'update' || message?.quiet === 1;
    const held = message?.held === 1;
    const delivery: Delivery = {
      id,
      seq: after.seq as number,
      messageId: after.message_id as string,
      project: after.project as string,
      recipient: after.recipient as string,
      toSession: after.target_kind === 'session',
      intended: (after.intended_session as string | null) ?? undefined,
      progress,
      held,
      worthy: !progress && !held,
      expiresAtMs: typeof after.expires_at === 'string' ? Date.parse(after.expires_at) : undefined,
      supersededBy: undefined,
      open: true,
      takenInAtMs: undefined,
      intake: false,
      acked: false,
      hasEvent: false,
      accepted: false,
    };
    this.deliveries.set(id, delivery);
    this.deliveryOfMessage.set(delivery.messageId, delivery);
    const open = this.open.get(delivery.project);
    if (open === undefined) this.open.set(delivery.project, new Map([[id, delivery]]));
    else open.set(id, delivery);
  }

  #receipt(after: Row | undefined): void {
    const delivery = this.deliveries.get(after?.delivery_id as string);
    if (delivery === undefined) return;
    if (after?.receipt_kind === 'intake') {
      delivery.intake = true;
      delivery.takenInAtMs ??= Date.parse(after.recorded_at as string);
    }
    if (after?.receipt_kind === 'ack') delivery.acked = true;
  }

  #connection(after: Row): void {
    const connection: Connection = {
      id: after.connection_id as string,
      seq: after.seq as number,
      project: after.project as string,
      session: after.session_id as string,
      principal: after.principal_id as string,
      generation: after.generation as number,
      bell: after.bell as string,
      adapter: after.adapter_kind as string,
      leaseMs: after.lease_expires_at_ms as number,
      ended: after.disconnected_at !== null,
      deliveriesBefore:
        this.connections.get(after.connection_id as string)?.deliveriesBefore ?? this.deliveries.size,
    };
    this.connections.set(connection.id, connection);
    const key = `${connection.project}\n${connection.session}`;
    const last = this.registered.get(key);
    if (last === undefined || connection.seq >= last.seq) this.registered.set(key, connection);
  }

  #reservation(after: Row): void {
    const id = after.notification_id as string;
    const root = after.session_root as string;
    const reservation: Reservation = Object.assign(this.reservations.get(id) ?? { covers: new Map() }, {
      id,
      seq: after.seq as number,
      root,
      state: after.state as string,
      step: after.step as number,
      rungAtMs: after.rung_at_ms as number,
      expiresAtMs: after.expires_at_ms as number,
    });
    this.reservations.set(id, reservation);
    const newest = this.newest.get(root);
    if (newest === undefined || reservation.seq >= newest.seq) this.newest.set(root, reservation);
  }

  #link(newId: string, oldId: string): void {
    this.#links.set(newId, oldId);
    const joined = [...new Set([...this.chain(oldId), ...this.chain(newId)])];
    joined.sort((a, b) => Number(this.#links.has(a)) - Number(this.#links.has(b)));
    for (const id of joined) this.#groups.set(id, joined);
  }
}
