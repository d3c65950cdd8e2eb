// One bit from a process to another that cannot be told otherwise. Who waits for it makes the file, empty; who has something to
// say writes into it, and never makes one: what nobody waits for leaves nothing.

import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { createPrivateOnce } from './files.ts';

export const awaitMark = (file: string): void => void createPrivateOnce(file, '');

export function setMark(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r+');
  } catch {
    return;
  }
  try {
    writeSync(descriptor, '1');
  } finally {
    closeSync(descriptor);
  }
}

export const isMarked = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;

export const removeMark = (file: string): void => rmSync(file, { force: true });
