// Rows of the wiring in all installed hosts. A host that is not installed is not spoken of.

import { type Finding, worst } from '../../protocol/doctor.ts';
import type { DoctorFacts, Wiring } from './facts.ts';
import { claudeHooks, claudeMcp } from './wired-claude.ts';
import { codexHooks, codexMcp } from './wired-codex.ts';

export const mcp = (facts: DoctorFacts): Finding => ofAll([claudeMcp(facts), codexMcp(facts)]);
export const hooks = (facts: DoctorFacts): Finding => ofAll([claudeHooks(facts), codexHooks(facts)]);

function ofAll(hosts: readonly (Wiring | undefined)[]): Finding {
  const installed = hosts.filter((host) => host !== undefined);
  if (installed.length === 0)
    return { level: 'info', text: 'neither Claude Code nor Codex is installed for this account' };
  const findings = new Map(installed.flatMap((host) => host.findings).map((one) => [one.text, one]));
  return worst([...findings.values()], {
    level: 'pass',
    text: installed.map(({ sound }) => sound).join('; '),
  });
}
