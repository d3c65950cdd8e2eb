// What `doctor --fix` may do: make directories that are missing, wire an installed host by the host's own commands, and
// remove what dead processes left half written. Nothing else, and no file of a host.

import { codexCommands, type DoctorFacts, ownServers, pluginCommands, shellWord } from './facts.ts';

export type Step =
  | { kind: 'make'; directory: string }
  | { kind: 'run'; words: readonly string[] }
  | { kind: 'remove'; file: string };

export interface Mendable {
  /** In the order in which they are made. */
  missingDirectories: readonly string[];
  /** Drafts whose writers are dead. */
  drafts: readonly string[];
}

export function stepsFor(facts: DoctorFacts, { missingDirectories, drafts }: Mendable): Step[] {
  return [
    ...missingDirectories.map((directory): Step => ({ kind: 'make', directory })),
    ...[...wiring(facts), ...codexWiring(facts)].map((words): Step => ({ kind: 'run', words })),
    ...drafts.map((file): Step => ({ kind: 'remove', file })),
  ];
}

/** A plugin that is switched off is a person's choice; settings that cannot be read say nothing of what is missing. */
function wiring({ claude, packageDirectory }: DoctorFacts): (readonly string[])[] {
  const { program, plugin, marketplace, unread } = claude;
  if (program === undefined || unread.length > 0) return [];
  const commands = pluginCommands(packageDirectory).map((words) => [program, ...words.slice(1)]);
  if (plugin === undefined) return commands;
  return marketplace === undefined || marketplace.missing ? commands.slice(0, 1) : [];
}

/** As that. A server that was registered by hand is a choice, too: the plugin would be the second. */
function codexWiring({ codex, packageDirectory }: DoctorFacts): (readonly string[])[] {
  const { program, plugin, marketplace, unread, servers } = codex;
  if (program === undefined || unread.length > 0 || plugin?.unread !== undefined) return [];
  if (plugin?.copy !== undefined || plugin?.enabled === false) return [];
  if (plugin === undefined && ownServers(servers).length > 0) return [];
  return codexCommands(packageDirectory, marketplace).map((words) => [program, ...words.slice(1)]);
}

export function saidOf(step: Step): string {
  if (step.kind === 'make') return `make the directory ${step.directory}`;
  if (step.kind === 'remove') return `remove ${step.file}, half written by a process that is dead`;
  return `run ${step.words.map(shellWord).join(' ')}`;
}
