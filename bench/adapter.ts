// Target 2: a wake, from the send call to the bytes of the hand-off at the recipient's adapter. Sender and adapter
// share this process, so the figure includes what the sender does at the same time; the router is a process.

import path from 'node:path';
import { Attachment } from '../src/router/attachment.ts';
import { openDesk, sendOne, takeIn } from './desk.ts';
import { alternate, type Metric, median, type Plan, pause, quantile } from './metric.ts';
import { endAll, makeHome, startRouter } from './program.ts';
import { rawCommits } from './raw-commit.ts';

const settleMs = 300;

export async function adapterWake({ directory, program, quick }: Plan): Promise<Metric[]> {
  const home = makeHome(directory, 'adapter');
  await startRouter(program, home);
  const desk = await openDesk(home.directory, 'router');
  const raw = rawCommits(path.join(directory, 'adapter-raw'));
  let arrived = (): void => {};
  const attachment = new Attachment({
    ...desk,
    registration: {
      project: 'p',
      principal_id: 'reader',
      session_id: 'session',
      adapter_kind: 'claude-listener',
      bell: 'listener',
      host_kind: 'claude',
    },
    startRouter: () => {},
    endRouter: () => '',
    take: async () => {
      arrived();
      return { content: 'notice', receipt: {} };
    },
    onFault: (error) => {
      throw error;
    },
  });
  let sent = 0;
  const wake = async (): Promise<number> => {
    const start = performance.now();
    const rung = new Promise<number>((resolve) => {
      arrived = () => resolve(performance.now() - start);
    });
    const answer = await sendOne(desk, { project: 'p', recipient: 'reader' }, `key-${sent++}`);
    const ms = await rung;
    await takeIn(desk, answer);
    // The router still writes the acceptance; without this pause the next send would wait for that.
    await pause(3);
    return ms;
  };
  try {
    await pause(settleMs);
    const values = await alternate(quick ? 150 : 1_000, 30, { wake, raw: raw.commit });
    const what = 'wake: send call to bytes at the adapter';
    return [
      {
        id: '2a',
        what: `${what}, p50`,
        unit: 'ms',
        measured: median(values.wake),
        yardstick: { what: 'raw commit, p50', value: median(values.raw) },
        target: 5,
        stretch: 3,
      },
      { id: '2b', what: `${what}, p99`, unit: 'ms', measured: quantile(values.wake, 0.99), target: 10 },
    ];
  } finally {
    await attachment.close();
    raw.close();
    desk.close();
    await endAll();
  }
}
