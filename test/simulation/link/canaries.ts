// A planted fault for each promise of the link: what the product, or a relay, must never do.

import type { FactOut } from '../../../src/ports/peers.ts';
import type { Tx } from '../../../src/ports/store.ts';
import { isRefusal } from '../../../src/protocol/errors.ts';
import { type Altered, bentStore, unkept } from '../bent.ts';
import type { ProcessKind } from '../process.ts';
import type { Tamper } from './ports.ts';
import type { LinkCanary } from './run.ts';
import type { LinkWorld } from './world.ts';

const altered =
  (kind: ProcessKind, change: (tx: Tx, nowMs: number) => Altered): Tamper =>
  (store, process, machine) =>
    process.kind === kind ? bentStore(store, (tx) => change(tx, machine.nowMs())) : store;

/** Whoever trusts a machine is trusted by it, as far as its link is told. */
function trustsBack({ machines }: LinkWorld): void {
  for (const machine of machines) {
    const { policy } = machine.account;
    machine.account.policy = () => {
      const listed = policy();
      if (isRefusal(listed)) return listed;
      const other = (key: string) => machines.find((one) => one.key === key && one.trusts(machine.key));
      const of = (key: string) => listed.of(key) ?? (other(key) && { key, name: 'anybody', receipts: true });
      return { ...listed, of };
    };
  }
}

/** Facts of that kind are never put among those that peers are to be told. */
const silent =
  (fact: FactOut['fact']): Tamper =>
  (store, process, machine) =>
    (['router', 'command'] as const)
      .map((kind) =>
        altered(kind, ({ factsOut }) => ({
          factsOut: { add: (row) => (row.fact === fact ? undefined : factsOut.add(row)) },
        })),
      )
      .reduce((inner, tamper) => tamper(inner, process, machine), store);

/** By what it plants, with the checker that has to catch it. */
export const canaries: Record<string, { caughtBy: string; canary: LinkCanary }> = {
  'a body is changed on its way into the store': {
    caughtBy: 'stored at most once, as it was sent',
    canary: {
      tamper: altered('router', ({ messages }) => ({
        messages: { insert: (row) => messages.insert({ ...row, payload: '"letter 0 "' }) },
      })),
    },
  },
  'a send that is repeated under its key is another message': {
    caughtBy: 'stored at most once, as it was sent',
    canary: {
      tamper: altered('command', ({ messages }, nowMs) => ({
        messages: {
          byIdempotencyKey: () => undefined,
          insert: (row) =>
            messages.insert({ ...row, idempotency: { key: `${nowMs}`, content_sha256: row.payload_sha256 } }),
        },
      })),
    },
  },
  'what was stored is said to be acknowledged': {
    caughtBy: 'no receipt without its fact',
    canary: {
      tamper: altered('router', ({ factsOut }) => ({
        factsOut: {
          add: (row) => {
            factsOut.add(row);
            if (row.fact === 'stored') factsOut.add({ ...row, fact: 'ack', detail: 'ack' });
          },
        },
      })),
    },
  },
  'a receipt is kept under another key': {
    caughtBy: 'no receipt without its fact',
    canary: {
      tamper: altered('router', ({ receipts }) => ({
        receipts: {
          insertLinkFact: (row, eventId) =>
            receipts.insertLinkFact('peer_key' in row ? { ...row, peer_key: 'another' } : row, eventId),
        },
      })),
    },
  },
  'whoever trusts is trusted': {
    caughtBy: 'nothing of strangers, and nothing to them',
    canary: { start: trustsBack },
  },
  'a message ends with its acceptance by a relay': {
    caughtBy: 'an entry ends for a reason, and goes out no more',
    canary: {
      tamper: altered('router', ({ outbox }, nowMs) => ({
        outbox: {
          putPost: (row) => {
            outbox.putPost(row);
            if (row.accepted_ms !== null) outbox.end(row.message_id, new Date(nowMs).toISOString());
          },
        },
      })),
    },
  },
  'what has ended is posted again': {
    caughtBy: 'an entry ends for a reason, and goes out no more',
    canary: {
      tamper: altered('router', ({ outbox }, nowMs) => ({
        outbox: {
          end: (id, at) => {
            outbox.end(id, at);
            for (const post of outbox.posts(id)) outbox.putPost({ ...post, next_ms: nowMs + 1_000 });
          },
        },
      })),
    },
  },
  'a command is answered before its commit': {
    caughtBy: 'what was answered is kept',
    canary: {
      tamper: (store, process, { name }) =>
        process.kind === 'command' && name === 'alice'
          ? { ...store, write: (work) => unkept(store, work) }
          : store,
    },
  },
  'that a message is stored is not told': {
    caughtBy: 'both sides agree in the end',
    canary: { tamper: silent('stored') },
  },
  'acknowledgements are not told': {
    caughtBy: 'both sides agree in the end',
    canary: { tamper: silent('ack') },
  },
  'a queue that was left is never purged': {
    caughtBy: 'both sides agree in the end',
    canary: { tamper: altered('router', () => ({ places: { retired: () => [] } })) },
  },
};
