// Servers and listeners that run now for one session: they must have one store, and ids that the store links. Where they do
// not, the one rings for what the other never looks at.

import type { Integration } from '../../ports/inspection.ts';
import type { Finding } from '../../protocol/doctor.ts';
import { quoted } from '../../protocol/json.ts';
import { type DoctorFacts, unseen } from './facts.ts';

interface Pair {
  server: Integration;
  listener: Integration;
}

/** @param roots of their ids, as the store that is looked at links them; undefined where it could not be looked at */
export function mismatches(
  { integrations }: Pick<DoctorFacts, 'integrations'>,
  roots: Readonly<Record<string, string>> | undefined,
): Finding[] {
  const looked = integrations.state === 'found' ? integrations.value : [];
  const running = looked.flatMap((one) => (one.state === 'found' ? [one.value] : []));
  const closed = looked.flatMap((one) => (one.state === 'closed' ? [unseen(one.why)] : []));
  const found = running.flatMap((listener) => {
    if (listener.role !== 'listener') return [];
    const servers = running.filter(({ role, hostPid }) => role === 'server' && hostPid === listener.hostPid);
    const wrong = servers.map((server) => wrongOf({ server, listener }, roots));
    // One that fits is its own: of the others nothing is known.
    return wrong.includes(undefined) ? [] : wrong.flatMap((one) => one ?? []);
  });
  const once = new Map([...closed, ...found].map((finding) => [finding.text, finding]));
  return [...once.values()];
}

function wrongOf(
  { server, listener }: Pair,
  roots: Readonly<Record<string, string>> | undefined,
): Finding | undefined {
  // Of another home and another store: whoever looks there is told.
  if (![server, listener].some(({ looked, ours }) => looked || ours)) return undefined;
  if (server.database !== listener.database)
    return {
      level: 'warn',
      text: `a session\u2019s server and its listener have different stores, so that nothing rings: ${server.database} (server), ${listener.database} (listener)`,
      hint: 'start host, server and hooks with the same POSTBELL_HOME and POSTBELL_DB',
    };
  const { session: served } = server;
  const { session: heard } = listener;
  if (
    roots === undefined ||
    !server.looked ||
    served === undefined ||
    heard === undefined ||
    !(server.pinned || listener.pinned)
  )
    return undefined;
  if ((roots[served] ?? served) === (roots[heard] ?? heard)) return undefined;
  return {
    level: 'warn',
    text: `a session\u2019s server and its listener have different ids that nothing links, so that nothing rings: ${quoted(served)} (server), ${quoted(heard)} (listener)`,
    hint: 'set one POSTBELL_SESSION for host, server and hooks, or none',
  };
}
