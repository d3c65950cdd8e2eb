// Agents that were tried with this release, by the name and version that each gives itself. Any other is used as it presents
// itself: what it lacks shows in what it answers. One that speaks another version of the protocol is refused.

export const triedAgents: Readonly<Record<string, string>> = {
  'gemini-cli': '0.61.0',
  OpenCode: '1.18.33',
  '@agentclientprotocol/codex-acp': '2.6.0',
  '@agentclientprotocol/claude-agent-acp': '0.101.0',
};

export interface AgentName {
  name: string;
  version: string;
}

/** What a person should know of it; undefined of one that was tried. */
export function untried({ name, version }: AgentName): string | undefined {
  const tried = Object.hasOwn(triedAgents, name) ? triedAgents[name] : undefined;
  if (tried === undefined) return 'it was not tried with this release; it is used as it presents itself';
  return tried === version ? undefined : `${tried} was tried with this release, and not this version`;
}
