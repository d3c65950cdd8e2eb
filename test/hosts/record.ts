/** Items in the order they came, and waiting for one that fits. */
export interface Recording<T> {
  items: T[];
  add(item: T): void;
  /** The first item at `from` or later, past or to come, that fits. Rejects after `ms`, or once the record ends. */
  waitFor: (predicate: (item: T) => boolean, ms: number, from?: number) => Promise<T>;
  /** No item will come any more: every wait, also one begun later, rejects with what `why` says then. */
  end(why: () => string): void;
}

/** Makes an empty record; `what` names its items in the errors of `waitFor`. */
export function record<T>(what: string): Recording<T> {
  const items: T[] = [];
  const checks = new Set<() => void>();
  let ended: (() => string) | undefined;
  const checkAll = () => {
    for (const check of checks) check();
  };
  return {
    items,
    add(item) {
      items.push(item);
      checkAll();
    },
    waitFor(predicate, ms, from = 0) {
      return new Promise((resolve, reject) => {
        let next = from;
        const settle = (how: () => void) => {
          clearTimeout(timer);
          checks.delete(check);
          how();
        };
        const fail = (why: string) => settle(() => reject(new Error(`no such ${what}: ${why}`)));
        const check = () => {
          try {
            while (next < items.length) {
              const item = items[next++]!;
              if (predicate(item)) return settle(() => resolve(item));
            }
          } catch (error) {
            return settle(() => reject(error));
          }
          if (ended) fail(ended());
        };
        const timer = setTimeout(() => fail(`waited ${ms} ms, ${items.length} came`), ms);
        checks.add(check);
        check();
      });
    },
    end(why) {
      ended = why;
      checkAll();
    },
  };
}
