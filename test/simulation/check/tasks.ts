// What must be superseded, from the messages alone: within one scope the newest update waits and none before it, and none
// at all once the task has an end.

import type { Row } from '../../../src/store/database.ts';
import type { Delivery } from '../facts.ts';

interface Told {
  delivery: Delivery;
  createdAt: string;
}

interface Task {
  updates: Told[];
  ends: Set<string>;
}

const endings = new Set(['result', 'failed', 'canceled']);

const keyOf = (
  { project, recipient, toSession, intended }: Delivery,
  { sender, task_id }: Row,
  session: string | null,
): string => JSON.stringify([sender, session, task_id, project, recipient, toSession, intended]);

/** By scope: sender and its session under all its ids, task, and the inbox it is told to. */
export class Tasks {
  readonly #tasks = new Map<string, Task>();
  readonly #chain: (id: string) => readonly string[];

  constructor(chain: (id: string) => readonly string[]) {
    this.#chain = chain;
  }

  /** Undefined where the message is neither progress of a task nor its end. */
  scopeOf(delivery: Delivery, message: Row): string | undefined {
    const { task_id, status } = message;
    if (task_id === null || (status !== 'update' && !endings.has(status as string))) return undefined;
    return keyOf(delivery, message, this.#ids(message)[0] ?? null);
  }

  #ids({ caller_session }: Row): readonly string[] {
    return caller_session === null ? [] : this.#chain(caller_session as string);
  }

  /** What the ids of a session were told apart has one scope from the first message on that comes after their link. */
  add(scope: string, delivery: Delivery, message: Row): void {
    const task: Task = { updates: [], ends: new Set() };
    for (const key of new Set([scope, ...this.#ids(message).map((id) => keyOf(delivery, message, id))])) {
      const part = this.#tasks.get(key);
      task.updates.push(...(part?.updates ?? []));
      for (const end of part?.ends ?? []) task.ends.add(end);
      this.#tasks.delete(key);
    }
    this.#tasks.set(scope, task);
    if (message.status !== 'update') task.ends.add(delivery.messageId);
    else task.updates.push({ delivery, createdAt: message.created_at as string });
  }

  /** What is not as it must be. */
  wrongIn(scope: string): string[] {
    const { updates, ends } = this.#tasks.get(scope) ?? { updates: [], ends: new Set<string>() };
    const known = new Set([...ends, ...updates.map(({ delivery }) => delivery.messageId)]);
    const newest = updates.toSorted(
      (a, b) => a.createdAt.localeCompare(b.createdAt) || a.delivery.seq - b.delivery.seq,
    );
    return newest.flatMap(({ delivery }, nth) => {
      const { id, messageId, supersededBy } = delivery;
      const over = ends.size > 0 || nth < newest.length - 1;
      if (!over) return supersededBy === undefined ? [] : [`${id} is the newest of its task, and superseded`];
      if (supersededBy === undefined) return [`${id} is overtaken, and waits`];
      const fits = known.has(supersededBy) && supersededBy !== messageId;
      return fits ? [] : [`${id} is superseded by ${supersededBy}, which is of no such task`];
    });
  }
}
