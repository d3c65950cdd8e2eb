// Target 8: what the router holds for one more session.

import type { Attachment } from '../src/router/attachment.ts';
import { attach, openDesk } from './desk.ts';
import { privateMebibytes } from './memory.ts';
import { type Outcome, type Plan, pause } from './metric.ts';
import { endAll, makeHome, startRouter } from './program.ts';

const fewest = 20;
const settleMs = 3_000;

export async function sessionMemory({ directory, program, quick }: Plan): Promise<Outcome[]> {
  const id = '8';
  const what = 'router memory for one more session';
  if (process.platform !== 'linux') return [{ id, what, why: 'needs /proc (Linux)' }];
  const most = quick ? 120 : 320;
  const home = makeHome(directory, 'sessions');
  const router = await startRouter(program, home);
  const desk = await openDesk(home.directory, 'router');
  const attachments: Attachment[] = [];
  const grow = async (count: number): Promise<number> => {
    while (attachments.length < count) {
      attachments.push(attach(desk, `session-${attachments.length}`));
      if (attachments.length % 20 === 0) await pause(100);
    }
    await pause(settleMs);
    return privateMebibytes(router.pid);
  };
  const before = await grow(fewest);
  const after = await grow(most);
  for (const attachment of attachments) await attachment.close();
  desk.close();
  await endAll();
  return [
    {
      id,
      what,
      unit: 'KiB',
      measured: ((after - before) * 1_024) / (most - fewest),
      target: 100,
      stretch: 25,
      note: `${before.toFixed(1)} MiB with ${fewest}, ${after.toFixed(1)} MiB with ${most}`,
    },
  ];
}
