// The cursor of a listener passes only what it has printed, or what nothing waits for any more.

import type { Checker, MakeChecker } from '../checker.ts';
import type { Process } from '../process.ts';

export const theCursorCoversWhatWasPrinted: MakeChecker = ({ facts, broken }): Checker => {
  const printed = new WeakMap<Process, Set<string>>();
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
          .filter(({ seq, notice }) => seq > from && seq <= to && facts.waitsFor(notice))
          .toSorted((a, b) => a.seq - b.seq)
          .at(-1);
        if (newest === undefined || (by !== undefined && printed.get(by)?.has(newest.notice))) continue;
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
