/** The tested version of Claude Code, and the oldest that has all that the automatic road needs. */
export const claudeVersions: readonly [string, string];

/** Path of the installed Claude Code binary of that version (the tested one), or undefined. Cheap: looks, runs nothing. */
export function claudeBinary(version?: string): string | undefined;

/** Installs that version of Claude Code unless it is there; returns the path of its binary. */
export function installClaude(version: string): Promise<string>;
