// Which relays a message goes to, once its device is known: all that the peer names for it, else all own ones. One acceptance is enough;
// each relay is tried for itself.

import type { OutboxPost, OutboxRow } from '../ports/peers.ts';
import type { Tx } from '../ports/store.ts';
import { chooseDevice, knownDevices } from './choose-device.ts';

const pageCount = 500;

export interface Routing {
  nowMs: number;
  /** Origins of the own relays. */
  relays: readonly string[];
}

/** Sends what is on its way to no relay yet, where a device is known by now. @returns how many were sent on */
export function routeEntries(tx: Tx, routing: Routing): number {
  let routed = 0;
  for (let after = 0; ; ) {
    const entries = tx.outbox.unrouted(pageCount, after);
    for (const entry of entries) if (routeEntry(tx, entry, routing)) routed += 1;
    const last = entries.at(-1);
    if (last === undefined || entries.length < pageCount) return routed;
    after = last.seq;
  }
}

function routeEntry(tx: Tx, entry: OutboxRow, routing: Routing): boolean {
  const device = entry.device ?? deviceFor(tx, entry, routing.nowMs);
  if (device === undefined) return false;
  if (entry.device === null) tx.outbox.route(entry.message_id, device);
  const origins = relaysOf(tx, entry.peer_key, device, routing.relays);
  for (const relay of origins) tx.outbox.putPost(firstPost(entry.message_id, relay, device, routing.nowMs));
  return origins.length > 0;
}

/** One that several devices fit alike by now goes to that which was heard of last: when it was sent none was known, and nobody waits. */
function deviceFor(tx: Tx, { message_id, peer_key }: OutboxRow, nowMs: number): string | undefined {
  const message = tx.messages.byId(message_id)?.message;
  if (message === undefined) return undefined;
  const choice = chooseDevice(knownDevices(tx, peer_key, nowMs), message);
  if (choice === 'none') return undefined;
  return 'device' in choice ? choice.device : choice.several[0]?.row.device;
}

/** Where a device of a peer is reached. */
export function relaysOf(tx: Tx, peerKey: string, device: string, own: readonly string[]): readonly string[] {
  const named = tx.devices.get(peerKey, device)?.relays ?? [];
  return named.length > 0 ? named : own;
}

const firstPost = (message_id: string, relay: string, device: string, nowMs: number): OutboxPost => ({
  message_id,
  relay,
  device,
  attempts: 0,
  failures: 0,
  accepts: 0,
  next_ms: nowMs,
  accepted_ms: null,
  parked: false,
  last_error: null,
});

/** A peer said anew where it is reached: what is still on its way goes there. A device that is known no more is chosen again. */
export function rerouteEntries(tx: Tx, peerKey: string, routing: Routing): void {
  const known = new Set(tx.devices.of(peerKey).map(({ device }) => device));
  for (const entry of tx.outbox.open(Number.MAX_SAFE_INTEGER, peerKey)) {
    if (entry.device === null) continue;
    const lost = !known.has(entry.device);
    const device = lost ? deviceFor(tx, entry, routing.nowMs) : entry.device;
    if (device === undefined) continue;
    if (lost) tx.outbox.dropPosts(entry.message_id);
    if (lost) tx.outbox.route(entry.message_id, device);
    const origins = relaysOf(tx, peerKey, device, routing.relays);
    const posts = tx.outbox.posts(entry.message_id);
    for (const post of posts)
      if (!origins.includes(post.relay) && post.next_ms !== null)
        tx.outbox.putPost({ ...post, next_ms: null });
    for (const relay of origins)
      if (!posts.some((post) => post.relay === relay && post.next_ms !== null))
        tx.outbox.putPost(firstPost(entry.message_id, relay, device, routing.nowMs));
  }
}
