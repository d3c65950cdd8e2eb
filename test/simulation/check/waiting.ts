// The inbox, the notifier, the coverage of the reservation and the listener give one answer to what waits.

import type { Checker, Sight } from '../checker.ts';

/** A session as the product's own use cases see it. */
export interface Views {
  session: { project: string; id: string; principal: string };
  inbox(): { messageIds: string[]; count: number };
  notifier(): Promise<{ act: 'ring' | 'wait' | 'idle'; covers: string[] }>;
  listener(): { prints: boolean } | undefined;
  coverage(): readonly string[];
}

export const oneAnswerToWhatWaits =
  (someSession: () => Views | undefined) =>
  ({ facts, broken }: Sight): Checker => ({
    name: 'one answer to what waits',
    look: async () => {
      const views = someSession();
      if (views === undefined) return;
      const { project, id, principal } = views.session;
      const known = facts.connectionOf(project, id)?.principal ?? principal;
      const waiting = facts.waiting(project, id, facts.namesOf(known));
      const worthy = waiting.filter((delivery) => delivery.worthy);
      const expected = [...worthy, ...waiting.filter((delivery) => !delivery.worthy)].map(
        (one) => one.messageId,
      );
      const inbox = views.inbox();
      if (inbox.count !== expected.length || inbox.messageIds.join() !== expected.slice(0, 100).join())
        broken(
          `the inbox of ${id} shows ${inbox.messageIds.join()} (${inbox.count}); there waits ${expected.join()}`,
        );
      const { act, covers } = await views.notifier();
      if ((act === 'idle') !== (worthy.length === 0))
        broken(`the notifier of ${id} is to ${act}, and ${worthy.length} attention-worthy messages wait`);
      if (act === 'ring' && covers.join() !== worthy.map((one) => one.id).join())
        broken(
          `a ring for ${id} would cover ${covers.join()}; there waits ${worthy.map((one) => one.id).join()}`,
        );
      const root = facts.root(id);
      const newest = facts.newest.get(root);
      const covered = newest === undefined ? [] : facts.coveredWaiting(newest);
      if (views.coverage().toSorted().join() !== covered.toSorted().join())
        broken(`the coverage of ${root} is said to be ${views.coverage().join()}, and is ${covered.join()}`);
      const cursor = facts.cursors.get(root) ?? 0;
      const lines = facts
        .chain(id)
        .flatMap((each) => facts.lines.get(each)?.filter((line) => line.seq > cursor) ?? [])
        .toSorted((a, b) => a.seq - b.seq)
        .slice(0, 64);
      const prints = lines.some(({ notice }) => facts.waitsFor(notice));
      const listener = views.listener();
      if ((listener === undefined) !== (lines.length === 0) || (listener?.prints ?? false) !== prints)
        broken(
          `the listener of ${id} would ${listener?.prints ? '' : 'not '}print; ${lines.length} rows lie before it`,
        );
    },
  });
