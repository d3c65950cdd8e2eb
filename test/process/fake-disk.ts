// A disk of two mebibytes, which is soon full.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Home } from './home.ts';

/** Why there can be none here; undefined where there can. */
export function whyNoDisk(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may mount a disk that is full';
  return spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0
    ? undefined
    : 'no disk can be mounted here';
}

/** Puts the home's data on a disk of its own, until the home ends. */
export function smallDisk(home: Home): void {
  const data = home.env.POSTBELL_HOME as string;
  mkdirSync(data, { mode: 0o700, recursive: true });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m,mode=0700', 'tmpfs', data]);
  if (mounted.status !== 0) throw new Error(`no disk: ${String(mounted.stderr)}`);
  home.atLast(() => spawnSync('umount', ['--lazy', data]));
}

const ballast = (data: string): string => path.join(data, 'ballast');

/** Leaves no room for another page. */
export function fillDisk(data: string): void {
  const { bavail, bsize } = statfsSync(data);
  writeFileSync(ballast(data), Buffer.alloc(bavail * bsize));
}

/** Makes room again. */
export function freeDisk(data: string): void {
  rmSync(ballast(data));
}
