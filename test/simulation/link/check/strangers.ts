// Of whoever is no peer nothing is stored, and nothing goes to it but what pairing needs.

import { isPairing } from '../../../../src/protocol/gate.ts';
import type { MakeLinkChecker } from '../checker.ts';
import type { Machine } from '../machine.ts';

/** What was let in right before the removal may be committed right after it. */
const underWayMs = 5_000;

export const nothingOfStrangers: MakeLinkChecker = (world, broken) => {
  const removed = new Map<string, number>();
  const wasTrusted = (machine: Machine, key: string): boolean =>
    machine.trusts(key) ||
    world.elapsedMs - (removed.get(`${machine.name} ${key}`) ?? Number.NEGATIVE_INFINITY) <= underWayMs;

  return {
    name: 'nothing of strangers, and nothing to them',
    onCommit: (machine, changes) => {
      for (const { table, before, after } of changes) {
        if (table !== 'message' || before !== undefined || after?.origin_id == null) continue;
        if (!wasTrusted(machine, after.peer_key as string))
          broken(`${machine.name} stored ${after.message_id} of a key that it does not trust`);
      }
    },
    onPost: ({ machine, to, header }) => {
      if (header.from !== machine.key || header.to !== to)
        broken(`${machine.name} posts a ${header.type} that is not from it, or not for that queue`);
      if (!machine.trusts(to) && !isPairing(header.type))
        broken(`${machine.name} sends a ${header.type} to a key that it does not trust`);
    },
    onDeed: (machine, deed) => {
      if (deed.kind === 'trusts no more') removed.set(`${machine.name} ${deed.key}`, world.elapsedMs);
    },
  };
};
