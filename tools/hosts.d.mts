/** Path of the installed Claude Code binary, or undefined. Cheap: looks, runs nothing. */
export function claudeBinary(): string | undefined;

/** Installs Claude Code in its tested version unless it is there; returns the path of its binary. */
export function installClaude(): Promise<string>;
