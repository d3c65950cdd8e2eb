// `postbell claude`: Claude Code with the plugin as the channel of its session. It stands in the place of that process: its
// words, its terminal, its signals and its end are Claude Code's.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { processEnvironment } from '../platform/environment.ts';
import { keyFile } from '../platform/paths.ts';
import { say } from '../platform/stderr.ts';
import { channelFlag, channelPlugin } from '../protocol/channel-flag.ts';
import { Fault } from '../protocol/errors.ts';
import { endingSignals } from './ending.ts';
import { orFail } from './failure.ts';

/** As a shell says that it found no such program. */
const notStarted = 127;

/** None of the words is for us. */
export function main(words: readonly string[]): Promise<void> {
  return orFail([], async () => run(words));
}

function run(words: readonly string[]): void {
  if (process.platform === 'win32') throw new Fault('unsupported_platform', 'no channel runs on Windows');
  const key = keyFile(processEnvironment);
  if (!existsSync(key))
    say(`postbell: there is no identity key at ${key}; mail between sessions of this machine needs none\n`);
  const child = spawn('claude', [channelFlag, channelPlugin, ...words], {
    stdio: 'inherit',
    env: { ...processEnvironment, POSTBELL_CHANNELS: '1' },
  });
  const forward = (signal: NodeJS.Signals): void => {
    // A terminal interrupts both at once, and twice would end Claude Code.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of endingSignals) process.on(signal, forward);
  child.on('error', ({ code }: NodeJS.ErrnoException) => {
    say(`postbell: claude cannot be started (${code}); is Claude Code installed, and on PATH?\n`);
    process.exitCode = notStarted;
  });
  child.on('exit', (code, signal) => {
    for (const one of endingSignals) process.off(one, forward);
    if (signal !== null) process.kill(process.pid, signal);
    else process.exitCode = code ?? notStarted;
  });
}
