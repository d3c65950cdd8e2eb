// A message is stored at most once where it goes to, as it was sent, and never changes there.

import type { Row } from '../../../../src/store/database.ts';
import type { Change } from '../../disk.ts';
import type { MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';

const compared = ['project', 'sender', 'recipient', 'target_kind', 'task_id', 'status', 'payload', 'quiet'];

const whole = `SELECT m.project, m.sender, d.recipient, d.target_kind, m.task_id, m.status, m.payload, m.quiet, m.tombstoned_at
  FROM message m JOIN delivery d ON d.message_id = m.message_id`;

/** What the machine stored of the message that its sender knows by that id. */
export const receivedAs = (machine: Machine, senderKey: string, wireId: unknown): Row | undefined =>
  machine.disk.get('SELECT * FROM message WHERE peer_key = ? AND origin_id = ?', senderKey, wireId as string);

export const storedAtMostOnce: MakeLinkChecker = ({ machines }, broken) => {
  const letters = new Map<string, string>();

  const compare = (machine: Machine, { message_id, peer_key, origin_id }: Row): void => {
    const here = machine.disk.get(`${whole} WHERE m.message_id = ?`, message_id as string) as Row;
    const sender = machines.find(({ key }) => key === peer_key);
    const sent = sender?.disk.get(
      `${whole} JOIN outbox o ON o.message_id = m.message_id WHERE o.wire_id = ? AND o.peer_key = ?`,
      origin_id as string,
      machine.key,
    );
    if (sent === undefined) {
      broken(`${machine.name} holds ${message_id}, which nobody sent it`);
      return;
    }
    for (const name of compared)
      if (here[name] !== sent[name] && here.tombstoned_at === null)
        broken(`${name} of ${message_id} at ${machine.name} is not as it was sent`);
  };

  const arrived = (machine: Machine, row: Row): void => {
    compare(machine, row);
    const { message_id } = row;
    const { payload } = machine.disk.get(`${whole} WHERE m.message_id = ?`, message_id as string) as Row;
    const letter = `${machine.name} ${String(payload).split(' ', 2).join(' ')}`;
    const before = letters.get(letter);
    if (before !== undefined) broken(`${before} and ${message_id} at ${machine.name} are one message`);
    letters.set(letter, message_id as string);
  };

  const changed = ({ before, after }: Change): void => {
    if (before === undefined || after === undefined) return;
    const other = Object.keys(after).find((name) => name !== 'tombstoned_at' && before[name] !== after[name]);
    if (other !== undefined) broken(`${other} of ${after.message_id} was changed`);
  };

  return {
    name: 'stored at most once, as it was sent',
    onCommit: (machine, changes) => {
      for (const change of changes) {
        if (change.table !== 'message') continue;
        if (change.before !== undefined) changed(change);
        else if (change.after?.origin_id != null) arrived(machine, change.after);
      }
    },
    atEnd: () => {
      for (const machine of machines)
        for (const row of machine.disk.all('SELECT * FROM message WHERE origin_id IS NOT NULL'))
          compare(machine, row);
    },
  };
};
