// The cursor of a listener passes only what it has printed, or what nothing waits for any more.

import type { Checker, MakeChecker } from '../checker.ts';
import type { Process } from '../process.ts';

export const theCursorCoversWhatWasPrinted: MakeChecker = ({ facts, broken }): Checker => {
  const printed = new WeakMap<Process, Set<string>>();
  /** What expires may have been over when it was passed, and waits again once the clock is set back. */
  const waitsForGood = (notice: string): boolean =>
    [...(facts.reservations.get(notice)?.covers.keys() ?? [])].some((id) => {
      const delivery = facts.deliveries.get(id);
      return delivery?.open === true && delivery.expiresAtMs === undefined;
    });
  return {
    name: 'the cursor covers what was printed',
    beforeCommit: (changes, by) => {
      for (const { table, before, after } of changes) {
        if (table !== 'listener_cursor' || after === undefined) continue;
        const root = after.session_root as string;
        const from = (before?.position as number | undefined) ?? 0;
        const to = after.position as number;
        const lines = facts.chain(root).flatMap((id) => facts.lines.get(id) ?? []);
        const newest = lines
          .filter(({ seq, notice }) => seq > from && seq <= to && waitsForGood(notice))
          .toSorted((a, b) => a.seq - b.seq)
          .at(-1);
        if (newest === undefined) continue;
        const own = by && printed.get(by);
        if (lines.some(({ seq, notice }) => seq >= newest.seq && seq <= to && own?.has(notice))) continue;
        const comesAgain = lines.some(({ seq, notice }) => seq > to && notice === newest.notice);
        if (!comesAgain)
          broken(`the cursor of ${root} passes ${newest.notice} at ${newest.seq}, which nobody printed`);
      }
    },
    onDeed: (deed, by) => {
      if (deed.kind !== 'printed' || by === undefined) return;
      const before = printed.get(by);
      if (before === undefined) printed.set(by, new Set([deed.notice]));
      else before.add(deed.notice);
    },
  };
};
