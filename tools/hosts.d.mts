/** Hosts that the tests run: the directory of the cache is named after them. */
export type HostName = 'claude-code' | 'codex' | 'gemini-cli' | 'opencode' | 'codex-acp' | 'claude-agent-acp';

/** By name: its versions, the tested one first. */
export const hosts: Readonly<
  Record<HostName, { readonly versions: readonly [string, ...string[]]; readonly program: readonly string[] }>
>;

/** Path of the installed program of that version (the tested one), or undefined. Cheap: looks, runs nothing. */
export function hostProgram(name: HostName, version?: string): string | undefined;

/** Path of the Node that the host needs: the one that runs, or the one that was installed beside it. */
export function hostNode(name: HostName): string;

/** Installs that version unless it is there; returns the path of its program. */
export function installHost(name: HostName, version: string): Promise<string>;
