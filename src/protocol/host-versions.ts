// Which releases of a host are known, and how well. A newer one than was tested is used, and what it lacks is found by trying.

import { compareVersions } from './semver.ts';

export interface KnownVersions {
  /** The newest that was tested. */
  tested: string;
  /** The oldest that has what is needed; from there to the tested one with limits. */
  floor: string;
}

/** Claude Code has hooks that wake it, and names its session to MCP servers, from its floor on. */
export const claudeVersions: KnownVersions = { tested: '2.1.332', floor: '2.1.197' };

/** Codex has `codex queue` from its floor on. */
export const codexVersions: KnownVersions = { tested: '0.171.0', floor: '0.159.0' };

export type Standing = 'tested' | 'limited' | 'newer' | 'refused' | 'unknown';

/** `unknown`: what is no version. */
export function standingOf(version: string, { tested, floor }: KnownVersions): Standing {
  const [toFloor, toTested] = [compareVersions(version, floor), compareVersions(version, tested)];
  if (toFloor === undefined || toTested === undefined) return 'unknown';
  if (toFloor < 0) return 'refused';
  if (toTested === 0) return 'tested';
  return toTested < 0 ? 'limited' : 'newer';
}
