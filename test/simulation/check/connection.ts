// A session has one live connection; what is unfinished on a connection ends with it; a new router begins with none
// open, and none outlives its lease.

import type { Checker, MakeChecker } from '../checker.ts';

/** Two looks of the router's tick. */
const tickMs = 5_000;
const leaseMs = 120_000;

export const connectionsEnd: MakeChecker = ({ facts, nowMs, broken }): Checker => {
  const open = new Set<string>();
  const unfinished = new Map<string, Set<string>>();
  return {
    name: 'connections end, and what runs on them',
    beforeCommit: (changes) => {
      for (const { table, before, after } of changes) {
        if (table !== 'connection' || before === undefined || after === undefined) continue;
        const was = before.lease_expires_at_ms as number;
        const lease = after.lease_expires_at_ms as number;
        // A promise that was made in time may be written later: the store was locked.
        const over = before.disconnected_at !== null || (was <= nowMs() && lease - leaseMs > was);
        if (over && lease > was) broken(`${after.connection_id} lives again`);
      }
    },
    afterCommit: (changes) => {
      for (const { table, after } of changes) {
        if (after === undefined) continue;
        const id = after.connection_id as string;
        if (table === 'attempt') {
          const running = unfinished.get(id) ?? new Set();
          unfinished.set(id, running);
          if (after.state === 'started') running.add(after.attempt_id as string);
          else running.delete(after.attempt_id as string);
        }
        if (table === 'connection') {
          if (after.disconnected_at === null) open.add(id);
          else open.delete(id);
        }
      }
      for (const { table, before, after } of changes) {
        if (table !== 'connection' || after === undefined) continue;
        const id = after.connection_id as string;
        const running = after.disconnected_at === null ? undefined : unfinished.get(id);
        if (running !== undefined && running.size > 0)
          broken(`${id} ended, and ${[...running].join()} did not`);
        if (before !== undefined) continue;
        const chain = facts.chain(after.session_id as string);
        for (const other of open) {
          const row = facts.connections.get(other);
          if (row === undefined || other === id || row.project !== after.project) continue;
          if (chain.includes(row.session) && row.leaseMs > nowMs()) broken(`${id} is live beside ${other}`);
        }
      }
    },
    onDeed: (deed) => {
      if (deed.kind !== 'listening') return;
      for (const id of open) broken(`${deed.router} listens, and ${id} of an earlier router is open`);
    },
    atEnd: () => {
      for (const id of open) {
        const row = facts.connections.get(id);
        if (row !== undefined && row.leaseMs + tickMs < nowMs()) broken(`${id} is open after its lease`);
      }
    },
  };
};
