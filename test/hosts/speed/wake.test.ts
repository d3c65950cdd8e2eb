// From the call of a send to the request of the model, through each real host, beside what the host itself takes: its own road
// by hand, without Postbell. Printed, and gated by nothing but that every message arrives.

import { afterAll, expect, it } from 'vitest';
import { acpHome } from '../../process/acp-runner.ts';
import { type CodexOffice, openCodexOffice } from '../codex.ts';
import { describeWithClaude, describeWithHost } from '../installed.ts';
import { noticesIn, openOffice } from '../office.ts';

const runs = 7;
/** A listener prints no more in one minute. */
const printsAMinute = 5;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const figures: { road: string; count: number; wake: number; floor?: number }[] = [];
afterAll(() => {
  for (const { road, count, wake, floor } of figures) {
    const beside =
      floor === undefined ? '' : `; the host alone ${floor.toFixed(0)} ms (${(wake / floor).toFixed(1)}x)`;
    console.log(`${road}: median of ${count}: ${wake.toFixed(0)} ms${beside}`);
  }
});
const handled = { timeout: 30_000, interval: 50 };

/** Milliseconds from `act` to the request that `arrives` finds. */
async function timed(act: () => Promise<unknown>, arrives: () => Promise<{ at: number }>): Promise<number> {
  const began = Date.now();
  const arrived = arrives();
  await act();
  return (await arrived).at - began;
}

describeWithClaude('speed of a wake', () => {
  it('an idle session with a listener', async () => {
    const office = await openOffice();
    try {
      const session = await office.stream('bob');
      await office.reachable('bob');
      const wakes: number[] = [];
      for (let n = 0; n < printsAMinute; n += 1) {
        const from = office.model.requests.length;
        const arrives = () =>
          office.model.waitFor((request) => noticesIn(office.model.text(request)) > n, 20_000, from);
        wakes.push(await timed(() => office.send('bob', `number ${n}`), arrives));
        await session.waitResult(n + 1, 20_000);
        // Its next listener arms, and the reservation is released.
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      }
      figures.push({ road: 'Claude Code, listener', count: wakes.length, wake: median(wakes) });
    } finally {
      await office.end();
    }
  });
});

describeWithHost('codex', 'speed of a wake', () => {
  async function measure(office: CodexOffice, road: string): Promise<void> {
    const { thread } = await office.open();
    await expect.poll(() => office.card(thread), handled).toBeDefined();
    const { model } = office;
    const next = (marker: string) => (from: number) => () =>
      model.waitFor(
        (request) => request.thread === thread && model.text(request).includes(marker),
        30_000,
        from,
      );
    const idle = async (): Promise<void> => {
      const count = model.requestsOf(thread).length;
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      if (model.requestsOf(thread).length !== count) await idle();
    };
    const floors: number[] = [];
    const wakes: number[] = [];
    for (let n = 0; n < runs; n += 1) {
      await idle();
      const words = ['queue', '--thread', thread, '--message', `by hand ${n}`];
      floors.push(await timed(() => office.codex(words), next(`by hand ${n}`)(model.requests.length)));
      await idle();
      const from = model.requests.length;
      const began = Date.now();
      const { message_id } = await office.sendExact(thread, `number ${n}`);
      wakes.push((await next(message_id)(from)()).at - began);
    }
    figures.push({ road, count: wakes.length, wake: median(wakes), floor: median(floors) });
  }

  it('an idle thread on a shared server', async () => {
    const office = await openCodexOffice();
    try {
      await office.serve();
      await measure(office, 'Codex, queue, shared server');
    } finally {
      await office.end();
    }
  }, 240_000);

  it('an idle terminal without a server', async () => {
    const office = await openCodexOffice();
    try {
      await measure(office, 'Codex, queue, terminal alone (it looks every 10 s)');
    } finally {
      await office.end();
    }
  }, 300_000);

  it('a scripted ACP agent', async () => {
    const acp = await acpHome();
    try {
      const { session } = await acp.running();
      const wakes: number[] = [];
      for (let n = 0; n < runs; n += 1) {
        const before = acp.log('prompt').length;
        const began = Date.now();
        await acp.toSession(session, { payload: `number ${n}` });
        await acp.happened('prompt', before + 1);
        wakes.push((acp.log('prompt').at(-1)?.at ?? Number.NaN) - began);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      figures.push({ road: 'ACP, scripted agent, to its prompt', count: wakes.length, wake: median(wakes) });
    } finally {
      await acp.home.end();
    }
  });
});
