import { fstatSync, statSync } from 'node:fs';

/** Whether nobody can read what is written there. Node opens the null device where a standard stream was closed. */
export const isNullDevice = (descriptor: number): boolean =>
  fstatSync(descriptor).rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev;
