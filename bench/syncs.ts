// Syncs of one send beside those of one raw commit: a disk whose sync is fast hides what another would show.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDesk, sendOne } from './desk.ts';
import type { Outcome, Plan } from './metric.ts';
import { rawCommits } from './raw-commit.ts';

const sends = 200;
const id = 'syncs';
const what = 'fsync and fdatasync calls of a local send';

export function syncsOfSend({ directory, program }: Plan): Outcome[] {
  const count = (kind: string): number => {
    const words = [
      process.argv[1] as string,
      program,
      '--child',
      kind,
      '--dir',
      path.join(directory, `syncs-${kind}`),
    ];
    const log = path.join(directory, `syncs-${kind}.log`);
    const trace = ['-f', '-qq', '-e', 'trace=fsync,fdatasync', '-e', 'signal=none', '-o', log];
    execFileSync('strace', [...trace, process.execPath, ...words]);
    const text = readFileSync(log, 'utf8');
    return text.split('\n').filter((line) => /\bf(data)?sync\(/.test(line)).length / sends;
  };
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
  } catch {
    return [{ id, what, why: 'needs strace' }];
  }
  return [
    {
      id,
      what,
      unit: 'a send',
      measured: count('send'),
      yardstick: { what: 'raw commit', value: count('raw') },
      target: 1.1,
    },
  ];
}

/** The traced process. */
export async function syncsChild(kind: string, directory: string): Promise<void> {
  if (kind === 'raw') {
    const raw = rawCommits(directory);
    for (let count = 0; count < sends; count += 1) raw.commit();
    raw.close();
    return;
  }
  const desk = await openDesk(directory, 'no router');
  for (let count = 0; count < sends; count += 1)
    await sendOne(desk, { project: 'p', recipient: 'r' }, `key-${count}`);
  desk.close();
}
