// The processes that a host started. A host gives each hook a process session of its own, and a killed host leaves
// its children to pid 1: neither process group nor parent finds them afterwards. So the tree is sampled while it lives.
// A process is known by pid and start time, so that a reused pid is never taken for it. Linux only (/proc).
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const sampleMs = 200;

interface Process {
  parent: number;
  started: string;
}

/** Reads one process; undefined where it is gone, or dead and not yet reaped. */
function processOf(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // proc(5): the command name in brackets may hold anything, so fields are counted from the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : { parent: Number(fields[1]), started: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function allProcesses(): Map<number, Process> {
  const all = new Map<number, Process>();
  for (const name of readdirSync('/proc')) {
    const process = /^\d+$/.test(name) ? processOf(Number(name)) : undefined;
    if (process) all.set(Number(name), process);
  }
  return all;
}

/** A process and all that it, or they, started. */
export interface Family {
  /** Pids of those that live, the first process included. */
  living: () => number[];
  /** Waits until none lives. False where some still do after `ms`. */
  gone(ms: number): Promise<boolean>;
  /** Waits `graceMs` for all to go, kills the rest by pid and stops watching. Returns the pids it had to kill. */
  end(graceMs: number): Promise<number[]>;
}

/** Begins to watch the process `root` and its descendants. */
export function watchFamily(root: number): Family {
  const known = new Map<number, string>();
  const first = processOf(root);
  if (first) known.set(root, first.started);

  function living(): number[] {
    const all = allProcesses();
    for (const [pid, started] of known) if (all.get(pid)?.started !== started) known.delete(pid);
    for (let grown = true; grown; ) {
      grown = false;
      for (const [pid, { parent, started }] of all) {
        if (known.has(pid) || !known.has(parent)) continue;
        known.set(pid, started);
        grown = true;
      }
    }
    return [...known.keys()];
  }
  async function gone(ms: number): Promise<boolean> {
    for (const until = Date.now() + ms; Date.now() < until; await pause(20)) {
      if (living().length === 0) return true;
    }
    return living().length === 0;
  }
  const timer = setInterval(living, sampleMs);
  timer.unref();
  return {
    living,
    gone,
    async end(graceMs) {
      await gone(graceMs);
      const left = living();
      for (const pid of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It went between the look and the kill.
        }
      }
      const all = await gone(5000);
      clearInterval(timer);
      if (!all) throw new Error(`processes that outlive SIGKILL: ${living().join(' ')}`);
      return left;
    },
  };
}
