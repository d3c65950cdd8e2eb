// The half of replay protection that memory suffices for: ids of records that are no messages. (A message is known by its row for
// ever.) Strangers have a set of their own, so that none of them can burn a peer's id.

import { limits } from '../protocol/limits.ts';
import type { RecordHeader } from '../protocol/wire/record.ts';

/** What is remembered of a record: a request to pair keeps its id when it is repeated, and is signed anew each time. */
export const replayId = ({ type, id, time_ms }: Pick<RecordHeader, 'type' | 'id' | 'time_ms'>): string =>
  type === 'pair_request' ? `${id} ${time_ms}` : id;

export class ReplayMemory {
  readonly #peers = new Map<string, Set<string>>();
  readonly #strangers = new Set<string>();

  has(key: string, id: string, isPeer: boolean): boolean {
    return isPeer ? this.#peers.get(key)?.has(id) === true : this.#strangers.has(`${key} ${id}`);
  }

  /** The oldest make room. */
  add(key: string, id: string, isPeer: boolean): void {
    const set = isPeer ? this.#of(key) : this.#strangers;
    set.add(isPeer ? id : `${key} ${id}`);
    if (set.size <= limits.replayIdsMax) return;
    for (const oldest of set) {
      set.delete(oldest);
      break;
    }
  }

  #of(key: string): Set<string> {
    const set = this.#peers.get(key) ?? new Set<string>();
    this.#peers.set(key, set);
    return set;
  }
}
