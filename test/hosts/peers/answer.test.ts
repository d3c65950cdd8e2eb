// A question and its answer between real hosts on two machines, asked from either.

import { afterEach, expect, it } from 'vitest';
import { until } from '../../process/home.ts';
import { factsAt } from '../../process/machines.ts';
import { describeWithClaude } from '../installed.ts';
import { noticesIn } from '../office.ts';
import { type Letter, openTwoMachines, type Side, type TwoMachines } from './two-machines.ts';

let machines: TwoMachines | undefined;
afterEach(async () => {
  await machines?.end();
  machines = undefined;
});

/** What its model was told first after `from` requests, in the turn that a notice began. */
function noticed({ told }: Side, from: number): string {
  const before = noticesIn(told()[from - 1] ?? '');
  const first = told()
    .slice(from)
    .find((text) => noticesIn(text) > before);
  if (first === undefined) throw new Error('no notice came');
  return first;
}

/** Once all that is expected is known. */
async function factsOnceAcknowledged(at: Side, letter: Letter) {
  const facts = () => factsAt(at, letter);
  await until(
    `${at.name} is told of each`,
    async () => (await facts()).state === 'receiver_acknowledged',
    20_000,
  );
  return facts();
}

interface Exchange {
  asker: Side;
  answerer: Side;
  sum: [number, number];
  to: { recipient: string; target_kind?: 'session' };
}

/** A person has the asker's session send; what follows is done by the two hosts alone. */
async function exchange({ asker, answerer, sum: [one, other], to }: Exchange): Promise<[Letter, Letter]> {
  const [question, result] = [`add ${one} and ${other}`, `the sum is ${one + other}`];
  const from = [asker.told().length, answerer.told().length] as const;
  const count = asker.letters().length;
  const send = { action: 'send', peer: answerer.name, sender: 'a label', ...to };
  const input = { ...send, payload: question, idempotency_key: question };
  await asker.terminal.type(`call message ${JSON.stringify(input)}`);
  await until('the answer is here', () => asker.letters().length === count + 2, 40_000);
  const [asked, answered] = asker.letters().slice(count) as [Letter, Letter];
  expect(answered).toMatchObject({ payload: result, reply_to: asked.message_id, project: asked.project });
  const there = answerer.letters().slice(count);
  expect(there).toMatchObject([{ payload: question }, { payload: result, reply_to: there[0]?.message_id }]);

  // Each sender: what a relay and the other store said, and no word on the host there.
  const [got, sentBack] = there as [Letter, Letter];
  for (const [at, letter, by] of [
    [asker, asked, answerer],
    [answerer, sentBack, asker],
  ] as const) {
    const { kinds, receipts } = await factsOnceAcknowledged(at, letter);
    const relayTook = `relay_accept ${machines?.origin}`;
    expect(kinds.toSorted()).toEqual(['ack acknowledged', 'intake ingested', relayTook, 'stored live']);
    const ofPeer = receipts.filter(({ source }) => source === 'peer');
    expect(ofPeer.map(({ peer_key }) => peer_key)).toEqual(Array(3).fill(by.key));
  }
  // Each reader: woken by its host's own bell; the notice holds no word of the mail, a tool's answer does.
  for (const [at, letter, text, before] of [
    [answerer, got, question, from[1]],
    [asker, answered, result, from[0]],
  ] as const) {
    const accepted = (await factsAt(at, letter)).receipts.filter((one) => one.receipt_kind === 'host_accept');
    expect(accepted).toMatchObject([{ value: 'notice', adapter_kind: at.bell }]);
    expect(noticed(at, before)).not.toContain(text);
    expect(at.received()).toContain(text);
  }
  return [asked, answered];
}

describeWithClaude('real hosts on two machines', () => {
  it('Claude Code answers what a Codex thread on the other machine asks, and the thread what it asks; notices wake both, without the mail', async () => {
    machines = await openTwoMachines();
    const { alice, bob } = machines;
    // To whoever has the name, and to the session whose id it is: answers go to the session that asked.
    const [, first] = await exchange({
      asker: alice,
      answerer: bob,
      sum: [19, 23],
      to: { recipient: 'reviewer' },
    });
    expect(first.recipient).toBe(alice.session);
    const [, second] = await exchange({
      asker: bob,
      answerer: alice,
      sum: [700, 77],
      to: { recipient: alice.session, target_kind: 'session' },
    });
    expect(second.recipient).toBe(bob.session);
    const screen = await bob.terminal.screen();
    expect(screen).toContain('Postbell: mail');
    expect(screen).toContain('mail handled');
  }, 110_000);
});
