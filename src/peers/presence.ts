// What the relays of a device say of it, merged: the youngest age counts. Relays that fail are named; where all fail, nothing is known.

import type { QueuePresence, Relay, RelayFailure } from '../ports/relay.ts';

export interface Said {
  /** Undefined where no relay knows the queue, or none answered. */
  presence: QueuePresence | undefined;
  failures: RelayFailure[];
}

export async function youngest(
  { peer_key, device }: { peer_key: string; device: string },
  origins: readonly string[],
  relay: (origin: string) => Relay | Promise<Relay>,
  signal?: AbortSignal,
): Promise<Said> {
  const failures: RelayFailure[] = [];
  const answers = await Promise.all(
    origins.map(async (origin) => {
      try {
        return await (await relay(origin)).card(`${peer_key}.${device}`, signal);
      } catch (error) {
        if ((error as Error)?.name !== 'RelayFailure') throw error;
        failures.push(error as RelayFailure);
        return undefined;
      }
    }),
  );
  const known = answers.filter((one) => one !== undefined).sort((a, b) => a.age_ms - b.age_ms);
  const [first] = known;
  if (first === undefined) return { presence: undefined, failures };
  // It closed its queue where it says so; one that a relay merely forgot is no word of its owner.
  return {
    presence: { ...first, card: first.card ?? known.find(({ card }) => card !== undefined)?.card },
    failures,
  };
}
