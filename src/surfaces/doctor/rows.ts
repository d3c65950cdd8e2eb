// The closed table of rows, and what is shown of them.

import { type DoctorRow, type Finding, type RowId, rowIds, verdictOf } from '../../protocol/doctor.ts';
import { harmless } from '../../protocol/json.ts';
import { inertJson } from '../../protocol/untrusted.ts';
import { identity, peers, relays } from './account.ts';
import { hookActivity } from './activity.ts';
import { claudeChannel, hostsConfig } from './configured.ts';
import type { DoctorFacts } from './facts.ts';
import { install, node, shellCli } from './installed.ts';
import { link } from './linked.ts';
import { probeCapability, probeRouter } from './probing.ts';
import { codexQueueRelease, listener, sessions } from './reached.ts';
import { routerSocket, routerVersion } from './routing.ts';
import { messageStorage, scope, store, storePermissions } from './stored.ts';
import { hooks, mcp } from './wired.ts';

const table: Readonly<Record<RowId, (facts: DoctorFacts) => Finding>> = {
  install,
  node,
  store,
  'store-permissions': storePermissions,
  mcp,
  hooks,
  'hook-activity': hookActivity,
  'shell-cli': shellCli,
  'router-socket': routerSocket,
  'router-version': routerVersion,
  sessions,
  'message-storage': messageStorage,
  scope,
  'claude-channel': claudeChannel,
  'codex-queue-release': codexQueueRelease,
  'hosts-config': hostsConfig,
  identity,
  peers,
  relays,
  link,
  listener,
  'probe-capability': probeCapability,
  'probe-router': probeRouter,
};

export const rowsOf = (facts: DoctorFacts): DoctorRow[] => rowIds.map((id) => ({ id, ...table[id](facts) }));

const idWidth = Math.max(...rowIds.map((id) => id.length));

/** One line a row, and the verdict. */
export function asText(rows: readonly DoctorRow[]): string {
  const lines = rows.map(({ id, level, text, hint }) => {
    const remedy = hint === undefined ? '' : `  \u2192 ${hint}`;
    return harmless(`${level}  ${id.padEnd(idWidth)}  ${text}${remedy}`);
  });
  return `${[...lines, verdictOf(rows)].join('\n')}\n`;
}

export const asJson = (rows: readonly DoctorRow[]): string =>
  `${inertJson({ verdict: verdictOf(rows), rows })}\n`;
