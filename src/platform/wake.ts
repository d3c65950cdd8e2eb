// The touch: one owner-private file that every writer touches after its commit and every waiter watches. A watch on
// the WAL itself sees the event before the commit is visible and loses wakes; this loses none.

import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  unwatchFile,
  utimesSync,
  watch,
  watchFile,
} from 'node:fs';
import path from 'node:path';
import type { Clock } from '../ports/clock.ts';
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
        const directory = path.dirname(file);
        const watched = inode(directory);
        let stop = (): void => watcher.close();
        let dead = false;
        // A directory that was removed or replaced tells no more: from then on the file is looked at by its path.
        const watcher = watch(directory, (_, changed) => {
          const removed = changed === path.basename(directory) || inode(directory) !== watched;
          if (removed && !dead) {
            dead = true;
            watcher.close();
            stop = pollInstead(file, onTouch);
          }
          if (removed || changed === name || changed === null) onTouch();
        });
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

/** For a process that commits for many: the touches of one turn of its event loop are one. */
export function gatherTouches(wake: Wake, clock: Clock): Wake {
  let due = false;
  return {
    watch: (onTouch) => wake.watch(onTouch),
    touch: () => {
      if (due) return;
      due = true;
      clock.after(0, () => {
        due = false;
        wake.touch();
      });
    },
  };
}

/** Where the system has no watch left to give (inotify instances are few), the file is looked at. */
function pollInstead(file: string, onTouch: () => void): () => void {
  watchFile(file, { interval: pollMs }, onTouch);
  return () => unwatchFile(file, onTouch);
}

const inode = (at: string): bigint | undefined => lstatSync(at, { bigint: true, throwIfNoEntry: false })?.ino;

/** A touch that cannot be made is made good by the waiters' tick. */
function makeAgain(file: string): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    closeSync(openSync(file, 'a', 0o600));
  } catch {
    // the waiters' tick sees the commit
  }
}
