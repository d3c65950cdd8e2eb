// The disks of a world of machines: real files in memory, each with the schema of the product.

import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openStore } from '../../../src/store/open.ts';
import { Dice } from '../dice.ts';
import { openDisk } from '../disk.ts';

/** A directory in memory, gone afterwards. */
export async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const directory = mkdtempSync(path.join(memory, 'postbell-link-simulation-'));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Disks with the product's schema and nothing in them. */
export async function diskMaker(directory: string) {
  const still = { nowMs: () => 0, elapsedMs: () => 0, after: () => () => {} };
  const template = path.join(directory, 'empty.db');
  const made = await openStore({ path: template, clock: still, random: new Dice(1) });
  made.close();
  return (name: string) => {
    const file = path.join(directory, `${name}.db`);
    copyFileSync(template, file);
    return openDisk(file);
  };
}
