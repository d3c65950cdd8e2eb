// What runs of real hosts leave behind, and where they connect: nothing, and nowhere but this machine.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { expect, it } from 'vitest';
import { openCodexOffice } from './codex.ts';
import { describeWithClaude, describeWithHost } from './installed.ts';
import { openOffice } from './office.ts';

/** Pids of all processes whose environment names this home. */
function ofHome(home: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => fileOf(pid, 'environ').split('\0').includes(`HOME=${home}`));
}

function fileOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** Remote ends of the TCP sockets of these processes that are not on this machine (proc(5), net/tcp). */
function foreignEnds(pids: readonly number[]): string[] {
  const sockets = new Set(pids.flatMap(socketsOf));
  return ['tcp', 'tcp6'].flatMap((name) =>
    readFileSync(`/proc/net/${name}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , remote = '', , , , , , , inode = '']) => sockets.has(inode) && !isHere(remote))
      .map(([, , remote]) => `${name} ${remote}`),
  );
}

/** Loopback, a mapped loopback, or none as of a socket that listens; little-endian hex. */
const isHere = (remote: string): boolean =>
  /^(?:0100007F|00000000|0{24}01000000|0{16}FFFF00000100007F|0{32}):/.test(remote);

function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** Looks while `work` goes on. */
async function watched(
  home: string,
  work: () => Promise<unknown>,
): Promise<{ foreign: string[]; seen: number }> {
  const foreign = new Set<string>();
  let seen = 0;
  const timer = setInterval(() => {
    const pids = ofHome(home);
    seen = Math.max(seen, pids.length);
    for (const end of foreignEnds(pids)) foreign.add(end);
  }, 100);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return { foreign: [...foreign], seen };
}

const handled = { timeout: 30_000, interval: 100 };

describeWithClaude('loopback and ends', () => {
  it('[HOST-233] connects to this machine alone, with a dummy key in a home of its own, and leaves no process', async () => {
    const office = await openOffice();
    const home = office.env.HOME as string;
    expect(office.env.ANTHROPIC_API_KEY).toMatch(/^dummy/);
    const { foreign, seen } = await watched(home, async () => {
      await office.stream('bob');
      await office.reachable('bob');
      const sent = await office.send('bob', 'hello');
      await expect.poll(async () => (await office.facts(sent)).kinds, handled).toContain('ack acknowledged');
    });
    await office.end();
    expect([foreign, seen > 3, ofHome(home)]).toEqual([[], true, []]);
  });
});

describeWithHost('codex', 'loopback and ends', () => {
  it('[HOST-233] connects to this machine alone, with a dummy key in a home of its own, and leaves no process', async () => {
    const office = await openCodexOffice();
    const home = office.env.HOME as string;
    expect(office.env.FIXTURE_API_KEY).toMatch(/^dummy/);
    const { foreign, seen } = await watched(home, async () => {
      const { thread } = await office.open();
      await expect.poll(() => office.card(thread), handled).toBeDefined();
      const sent = await office.sendExact(thread, 'hello');
      await expect.poll(async () => (await office.facts(sent)).kinds, handled).toContain('ack acknowledged');
    });
    await office.end();
    expect([foreign, seen > 3, ofHome(home)]).toEqual([[], true, []]);
  });
});
