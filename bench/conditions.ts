// Under what the figures were taken: without it a ratio cannot be compared.

import { readFileSync } from 'node:fs';
import { cpus, loadavg, platform, release } from 'node:os';
import { rawCommits } from './raw-commit.ts';

export interface Conditions {
  node: string;
  system: string;
  cpus: string;
  filesystem: string;
  sqlite: string;
  extra_ca_certs: 'unset';
  load_before: number;
  load_after?: number;
}

/** @param directory where the stores lie */
export function conditionsAt(directory: string): Conditions {
  if (process.env.NODE_EXTRA_CA_CERTS !== undefined) throw new Error('run by bench/main.mjs');
  const raw = rawCommits(directory);
  raw.close();
  return {
    node: process.version,
    system: `${platform()} ${release()}`,
    cpus: `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    filesystem: filesystemOf(directory),
    sqlite: raw.sqliteVersion,
    extra_ca_certs: 'unset',
    load_before: load(),
  };
}

/** Of one minute. */
export function load(): number {
  return Number((loadavg()[0] as number).toFixed(2));
}

/** The kind of the mount that holds the directory; on tmpfs a sync costs nothing. */
function filesystemOf(directory: string): string {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8').trim().split('\n');
    const holding = mounts
      .map((line) => line.split(' '))
      .map(([, point = '', kind = '']) => ({ point: point === '/' ? '' : point, kind }))
      .filter(({ point }) => `${directory}/`.startsWith(`${point}/`));
    return holding.toSorted((a, b) => a.point.length - b.point.length).at(-1)?.kind ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
