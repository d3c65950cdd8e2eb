// What the command lines above a hook show of a channel that its person meant to open.

import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { ancestors, type RunPs } from '../../src/platform/ancestry.ts';
import { channelFlagWarning, opensChannel } from '../../src/protocol/channel-flag.ts';
import { FakeClock } from './clock.ts';

const flag = '--dangerously-load-development-channels';
const server = 'server:postbell-channel';
const plugin = 'plugin:postbell@postbell';
const warned = (line: string) => channelFlagWarning(['/bin/sh -c hook', line, 'bash']);

/** A `ps` over processes 100, 101, … of these command lines, each the child of the next. */
function psOf(lines: readonly string[]): RunPs & { asked: (readonly string[])[] } {
  const asked: (readonly string[])[] = [];
  const run: RunPs = async (words) => {
    asked.push(words);
    const nth = Number(words.at(-1)) - 100;
    const parent = nth + 1 < lines.length ? 101 + nth : 0;
    return `  ${parent} ${lines[nth]}\n`;
  };
  return Object.assign(run, { asked });
}

describe('the channel flag', () => {
  it.each([
    `claude \u2014${flag.slice(2)} ${server}`,
    `claude \u2013${flag.slice(2)} ${server}`,
    `claude -${flag.slice(2)} ${server}`,
    `claude -${flag} ${server}`,
    `claude ${flag.slice(2)} ${plugin}`,
    `/opt/claude/bin/claude --model x \u2014${flag.slice(2)}`,
    `node /usr/local/bin/claude \u2014${flag.slice(2)} ${server}`,
    `claude ${server}`,
    `claude.exe --resume ${server}`,
    `claude ${plugin} hello`,
  ])('[HOST-118] warns with exactly one line of: %s', (line) => {
    expect(warned(line)).toMatch(/^[^\n]+$/);
    expect(warned(line)).toContain(flag);
  });

  it.each([
    'claude',
    'claude --resume',
    'claude channels of a server',
    'claude server:another',
    `claude ${flag} ${server}`,
    `claude ${server} ${flag}`,
    `claude ${flag}=${server}`,
    `claude ${plugin} ${flag} ${plugin}`,
    `claude ${flag} ${server} \u2014${flag.slice(2)}`,
    `vim claude ${server}`,
    `claude-wrapper ${server}`,
    `/home/claude/bin/other \u2014${flag.slice(2)}`,
  ])('[HOST-119] is silent of: %s', (line) => {
    expect(warned(line)).toBeUndefined();
  });

  it('[HOST-118, HOST-119] is that of the nearest host', () => {
    expect(channelFlagWarning([`claude ${flag} ${server}`, `claude ${server}`])).toBeUndefined();
    expect(channelFlagWarning(['claude', `claude ${server}`])).toBeUndefined();
    expect(channelFlagWarning([`claude ${server}`, `claude ${flag} ${server}`])).toBeDefined();
  });

  it('[HOST-119] is silent where the launcher is not identified, and where ps fails', async () => {
    expect(channelFlagWarning([])).toBeUndefined();
    expect(channelFlagWarning(['bash', `tmux ${server}`])).toBeUndefined();
    for (const fails of [0, 1]) {
      const ps = psOf(['sh', `claude ${server}`, 'bash']);
      const run: RunPs = (words, ms) =>
        Number(words.at(-1)) === 100 + fails ? Promise.reject(new Error('no ps')) : ps(words, ms);
      expect(channelFlagWarning(await ancestors(100, run))).toBeUndefined();
    }
    expect(channelFlagWarning(await ancestors(100, async () => 'nonsense'))).toBeUndefined();
    expect(channelFlagWarning(await ancestors(100, psOf(['sh', `claude ${server}`])))).toBeDefined();
  });
});

describe('the ancestors', () => {
  it.each([1, 2, 3, 4, 5, 6, 7])('are looked for up to six levels: a host at level %i', async (depth) => {
    const lines = [...Array(depth - 1).fill('sh -c x'), `claude ${server}`, 'login'];
    const ps = psOf(lines);
    const chain = await ancestors(100, ps);
    expect(chain).toEqual(lines.slice(0, 6));
    expect(ps.asked[0]).toEqual(['-ww', '-o', 'ppid=,command=', '-p', '100']);
    expect(ps.asked.length).toBe(Math.min(depth + 1, 6));
    expect(channelFlagWarning(chain) === undefined).toBe(depth === 7);
  });

  it('take no longer than two seconds in all, whatever each of them takes', async () => {
    const clock = new FakeClock();
    const allowed: number[] = [];
    const run: RunPs = async (_, timeoutMs) => {
      allowed.push(timeoutMs);
      await clock.advance(900);
      return '7 sh\n';
    };
    expect(await ancestors(100, run, clock)).toHaveLength(3);
    expect(allowed).toEqual([2_000, 1_100, 200]);
  });

  it('are those of a real process', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', server], { stdio: 'ignore' });
    try {
      const [nearest, next] = await ancestors(child.pid as number);
      expect(nearest).toContain(server);
      expect(next).toBeDefined();
    } finally {
      child.kill('SIGKILL');
    }
    await new Promise((resolve) => child.on('close', resolve));
    expect(await ancestors(child.pid as number)).toEqual([]);
  });
});

describe('a host', () => {
  it('was told to open a channel where its command line has flag and name, and not where it has neither or one', () => {
    const of = (line: string) => opensChannel(['sh -c x', line], server);
    expect([
      of(`claude ${flag} ${server}`),
      of(`claude --model x ${flag} ${server}`),
      of(`claude ${flag}=${server}`),
      of(`claude ${flag}=plugin:other@other,${server} --model x`),
    ]).toEqual([true, true, true, true]);
    for (const line of [
      'claude',
      `claude ${server}`,
      `claude ${flag} plugin:other@other`,
      `claude ${flag}X ${server}`,
    ])
      expect([line, of(line)]).toEqual([line, false]);
    expect([of('bash'), opensChannel([], server)]).toEqual([undefined, undefined]);
  });
});
