// Once nothing fails any more, all that waits for a live session with a bell is rung for within the longest reservation.

import { type Checker, described, type SessionView, type Sight } from '../checker.ts';

export const whatWaitsIsRung =
  (reachable: () => SessionView[]) =>
  ({ facts, broken }: Sight): Checker => {
    /** By the first id of a session: the deliveries that its printed notices covered. */
    const rung = new Map<string, Set<string>>();
    return {
      name: 'what waits is rung',
      onDeed: (deed) => {
        if (deed.kind !== 'printed') return;
        const root = facts.root(deed.session);
        const covers = facts.reservations.get(deed.notice)?.covers.keys() ?? [];
        const before = rung.get(root) ?? new Set();
        for (const id of covers) before.add(id);
        rung.set(root, before);
      },
      onCalm: () => rung.clear(),
      atEnd: () => {
        for (const { project, id, principal } of reachable()) {
          const known = facts.connectionOf(project, id)?.principal ?? principal;
          const silent = facts
            .waiting(project, id, facts.namesOf(known))
            .find((delivery) => delivery.worthy && !rung.get(facts.root(id))?.has(delivery.id));
          if (silent !== undefined) broken(`${id} was not rung for ${described(silent)}`);
        }
      },
    };
  };
