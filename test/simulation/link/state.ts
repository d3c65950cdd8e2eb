// How a world stands, for whoever reads a failure: of each machine where it is, whom it trusts, what it waits for, and what it knows of
// the message that the failure names.

import type { Machine } from './machine.ts';
import type { LinkWorld } from './world.ts';

const always = {
  place: 'SELECT * FROM place',
  asked: 'SELECT peer_key, request_id FROM pair_asked',
  requests: 'SELECT peer_key, device, request_id FROM pair_request',
  jobs: 'SELECT kind, peer_key, queue, next_ms, attempts, last_error FROM control_job',
  devices: 'SELECT peer_key, device, relays, heard_ms, age_ms, gone FROM peer_device',
  refused: 'SELECT * FROM gate_refusal',
};

const ofMessage = {
  message: 'SELECT message_id, created_at, peer_key, origin_id FROM message WHERE message_id = ?',
  outbox: 'SELECT * FROM outbox WHERE message_id = ?',
  posts: 'SELECT * FROM outbox_post WHERE message_id = ?',
  receipts: `SELECT r.receipt_kind, r.value, r.source, r.recorded_at FROM receipt r
    JOIN delivery d ON d.delivery_id = r.delivery_id WHERE d.message_id = ?`,
};

const lines = (
  { disk, name }: Machine,
  queries: Readonly<Record<string, string>>,
  ...values: string[]
): string[] =>
  Object.entries(queries).flatMap(([what, sql]) =>
    disk.all(sql, ...values).map((row) => `${name} ${what} ${JSON.stringify(row)}`),
  );

export function stateOf({ machines, relays, failure }: LinkWorld): string[] {
  const named = /msg_\w+/.exec(failure?.text ?? '')?.[0];
  const all = machines.flatMap((machine) => [
    `${machine.name} is ${machine.key} at ${machine.relays.join(', ')}, where it is ${new Date(machine.nowMs()).toISOString()}`,
    `${machine.name} trusts ${machine.peers.map(({ name }) => name).join(', ')}`,
    ...lines(machine, always),
    ...(named === undefined ? [] : lines(machine, ofMessage, named)),
  ]);
  const queues = relays.flatMap((relay) =>
    [...relay.queues.keys()].map((queue) => `${relay.origin} ${queue} holds ${relay.depth(queue)}`),
  );
  return [...all, ...queues];
}
