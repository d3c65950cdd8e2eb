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

/** By scope: sender and its session, task, and the inbox it is told to. */
export class Tasks {
  readonly #tasks = new Map<string, Task>();

  /** Undefined where the message is neither progress of a task nor its end. */
  scopeOf(delivery: Delivery, message: Row): string | undefined {
    const { task_id, status } = message;
    if (task_id === null || (status !== 'update' && !endings.has(status as string))) return undefined;
    const { project, recipient, toSession, intended } = delivery;
    return JSON.stringify([
      message.sender,
      message.caller_session,
      task_id,
      project,
      recipient,
      toSession,
      intended,
    ]);
  }

  add(scope: string, delivery: Delivery, message: Row): void {
    const task = this.#tasks.get(scope) ?? { updates: [], ends: new Set() };
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
