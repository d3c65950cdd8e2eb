// What the live view says of other machines: peers, what is on its way to them, and the relays.

import type { Desk } from '../../mailbox/desk.ts';
import { knownDevices } from '../../peers/choose-device.ts';
import { isRefusal } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';

/** Of a relay, as the router that runs in this process says. */
export interface RelayLine {
  origin: string;
  failure: string | undefined;
  since: string;
}

const peersMax = 6;
const order = ['live', 'away', 'gone', 'unknown'] as const;

/** Nothing where the account has no identity. */
export function abroadLines(
  { store, clock, account }: Pick<Desk, 'store' | 'clock' | 'account'>,
  relays: readonly RelayLine[],
): string[] {
  const identity = account?.identity();
  const policy = account?.policy();
  if (identity === undefined || isRefusal(identity)) return [];
  if (isRefusal(policy)) return [`Other machines: ${policy.message}`];
  const named = policy?.peers ?? [];
  const nowMs = clock.nowMs();
  return store.read((tx) => {
    const states = named.map(({ name, key }) => {
      const found = knownDevices(tx, key, nowMs).map(({ state }) => state);
      return `${quoted(name)} ${order.find((state) => found.includes(state)) ?? 'not heard of yet'}`;
    });
    const waiting = tx.pairing.requests.count();
    const { count } = tx.outbox.totals();
    const untaken = tx.outbox.pending(count + 1).length;
    const more = states.length > peersMax ? ` and ${states.length - peersMax} more` : '';
    return [
      ...(states.length === 0 ? [] : [`Peers: ${states.slice(0, peersMax).join(', ')}${more}`]),
      ...(waiting === 0 ? [] : [`Asking to pair: ${waiting} (postbell peer requests)`]),
      ...(count === 0
        ? []
        : [`On the way to peers: ${count}, of which no relay has ${untaken} (postbell inbox pending)`]),
      ...relays.map(
        ({ origin, failure, since }) =>
          `Relay ${origin}: ${failure === undefined ? 'answers' : `${failure}, since ${since}`}`,
      ),
    ];
  });
}
