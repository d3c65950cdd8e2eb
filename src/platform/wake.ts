// The touch: one owner-private file that every writer touches after its commit and every waiter watches. A watch on
// the WAL itself sees the event before the commit is visible and loses wakes; this loses none.

import { closeSync, openSync, unwatchFile, utimesSync, watch, watchFile } from 'node:fs';
import path from 'node:path';
import type { Wake } from '../ports/wake.ts';

const pollMs = 300;

/** @param file the wake file; its directory exists and is owner-private */
export function fileWake(file: string): Wake {
  const name = path.basename(file);
  return {
    touch: () => {
      const now = new Date();
      try {
        utimesSync(file, now, now);
      } catch {
        makeAgain(file);
      }
    },
    // The directory is watched, so that a deleted file is seen again as soon as the next touch makes it anew.
    watch: (onTouch) => {
      try {
        const watcher = watch(path.dirname(file), (_, changed) => {
          if (changed === name || changed === null) onTouch();
        });
        let stop = (): void => watcher.close();
        watcher.on('error', () => {
          watcher.close();
          stop = pollInstead(file, onTouch);
        });
        return () => stop();
      } catch {
        return pollInstead(file, onTouch);
      }
    },
  };
}

/** Where the system has no watch left to give (inotify instances are few), the file is looked at. */
function pollInstead(file: string, onTouch: () => void): () => void {
  watchFile(file, { interval: pollMs }, onTouch);
  return () => unwatchFile(file, onTouch);
}

/** A touch that cannot be made is made good by the waiters' tick. */
function makeAgain(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o600));
  } catch {
    // the waiters' tick sees the commit
  }
}
