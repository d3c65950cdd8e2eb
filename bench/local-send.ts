// Target 1: a durable send in process, beside a raw commit of the same rows.

import path from 'node:path';
import { openDesk, sendOne } from './desk.ts';
import { alternate, type Metric, median, type Plan, timed } from './metric.ts';
import { rawCommits } from './raw-commit.ts';

export async function localSend({ directory, quick }: Plan): Promise<Metric[]> {
  const desk = await openDesk(path.join(directory, 'local-send'), 'no router');
  const raw = rawCommits(path.join(directory, 'local-send-raw'));
  let sent = 0;
  try {
    const values = await alternate(quick ? 500 : 4_000, 300, {
      send: () => timed(() => sendOne(desk, { project: 'p', recipient: 'r' }, `key-${sent++}`)),
      raw: raw.commit,
    });
    return [
      {
        id: '1',
        what: 'durable local send in process, p50',
        unit: 'ms',
        measured: median(values.send),
        yardstick: { what: 'raw commit of the same rows', value: median(values.raw) },
        target: 1.6,
        stretch: 1.2,
      },
    ];
  } finally {
    raw.close();
    desk.close();
  }
}
