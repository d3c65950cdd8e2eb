// Once everything works again and time has passed, both sides of each message agree, nothing is left on the relays, and pairings that
// both people did stand on both sides.

import type { Row } from '../../../../src/store/database.ts';
import type { MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';
import { receivedAs } from './stored.ts';

const queriedMs = 604_800_000;

export const bothSidesAgree: MakeLinkChecker = (world, broken) => {
  const { machines, relays, lossy } = world;
  const asked = new Map<string, [Machine, string]>();

  const factsOf = ({ disk }: Machine, messageId: unknown, source: string): string[] =>
    disk
      .all(
        `SELECT DISTINCT r.receipt_kind, r.value FROM receipt r JOIN delivery d ON d.delivery_id = r.delivery_id
         WHERE d.message_id = ? AND r.source = ? ORDER BY 1, 2`,
        messageId as string,
        source,
      )
      .map(({ receipt_kind, value }) => `${receipt_kind} ${value}`);

  const agree = (sender: Machine, receiver: Machine, entry: Row): void => {
    const { message_id, wire_id, ended_at, expires_ms } = entry;
    const stored = receivedAs(receiver, sender.key, wire_id);
    const told = factsOf(sender, message_id, 'peer');
    const what = `${message_id} from ${sender.name} to ${receiver.name}`;
    if (ended_at === null)
      broken(`${what} is still on its way (${stored === undefined ? 'not ' : ''}stored there)`);
    if (stored === undefined || !told.some((fact) => fact.startsWith('stored'))) return;
    const ours = sender.disk.get('SELECT created_at FROM message WHERE message_id = ?', message_id as string);
    if (sender.nowMs() - Date.parse(ours?.created_at as string) >= queriedMs) return;
    const lost = lossy.has(`${receiver.key} ${sender.key}`);
    // Nobody asks for what a peer may say after its ack, nor is it said again.
    for (const fact of factsOf(receiver, stored.message_id, 'receipt'))
      if (!told.includes(fact) && !(lost && fact.startsWith('disposition')))
        broken(`${what}: its sender was not told ${fact} (${told.join(', ')}; expires ${expires_ms})`);
  };

  const checkOutbox = (sender: Machine): void => {
    for (const entry of sender.disk.all('SELECT * FROM outbox')) {
      const receiver = machines.find(({ key }) => key === entry.peer_key);
      if (receiver === undefined) broken(`${sender.name} wrote to nobody`);
      else if (sender.trusts(receiver.key) && receiver.trusts(sender.key)) agree(sender, receiver, entry);
      else if (!sender.trusts(receiver.key) && entry.ended_at === null)
        broken(`${entry.message_id} is on its way from ${sender.name} to one that is no peer`);
    }
  };

  const checkQueues = (): void => {
    const places = new Map(
      machines.map(({ key, disk, name }) => {
        const place = disk.get('SELECT device, door FROM place');
        return [key, { name, ids: [place?.device, place?.door] }] as const;
      }),
    );
    for (const relay of relays)
      for (const queue of relay.queues.keys()) {
        const [key = '', id = ''] = queue.split('.');
        const owner = places.get(key);
        const depth = relay.depth(queue);
        if (!owner?.ids.includes(id)) broken(`${relay.origin} still has a queue that ${owner?.name} left`);
        else if (depth > 0) broken(`${depth} items for ${owner.name} are left at ${relay.origin}`);
      }
  };

  return {
    name: 'both sides agree in the end',
    onDeed: (machine, deed) => {
      const pair = 'key' in deed ? `${machine.name} ${deed.key}` : '';
      if (deed.kind === 'asked') asked.set(pair, [machine, deed.key]);
      if (deed.kind === 'trusts no more') {
        // Whoever takes it back on either side has not asked for anything any more.
        for (const [name, [asker, key]] of asked)
          if ((asker === machine && key === deed.key) || (asker.key === deed.key && key === machine.key))
            asked.delete(name);
      }
    },
    atEnd: () => {
      for (const machine of machines) checkOutbox(machine);
      checkQueues();
      for (const [asker, key] of asked.values()) {
        const other = machines.find((one) => one.key === key);
        if (!asker.trusts(key) || !other?.trusts(asker.key))
          broken(`${asker.name} and ${other?.name} paired, and only one of them, or none, trusts the other`);
        if (asker.disk.get('SELECT 1 AS found FROM pair_asked WHERE peer_key = ?', key) !== undefined)
          broken(`${asker.name} still waits for ${other?.name}`);
      }
    },
  };
};
