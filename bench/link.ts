// Target 17: messages between two stores over one relay, the product's own processes at every place: signed, sealed, posted, drained, let
// through the gate, stored, and the receipt back at their sender.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { signerOf } from '../src/crypto/ed25519.ts';
import { keyText } from '../src/crypto/key-text.ts';
import type { Desk } from '../src/mailbox/desk.ts';
import { ownPlace } from '../src/peers/place.ts';
import { sendToPeer } from '../src/peers/send.ts';
import { accountOf } from '../src/platform/account.ts';
import { systemRandom } from '../src/platform/random.ts';
import { isRefusal } from '../src/protocol/errors.ts';
import { openDesk } from './desk.ts';
import { median, type Outcome, type Plan, pause } from './metric.ts';
import { type Home, startRouter, startTelling } from './program.ts';
import { verifyRate } from './relay.ts';

const payload = 'x'.repeat(1_024);
const caller = { transport: 'cli', source_host: 'bench' } as const;

interface Machine {
  home: string;
  desk: Desk & { close(): void };
  key: string;
  device: string;
}

/** A home with an identity, and its store. */
async function machineIn(parent: string, name: string): Promise<Machine> {
  const home = path.join(parent, name);
  const config = path.join(home, '.config', 'postbell');
  mkdirSync(config, { recursive: true, mode: 0o700 });
  const seed = systemRandom.bytes(32);
  writeFileSync(path.join(config, 'identity.key'), `${keyText(seed)}\n`, { mode: 0o600 });
  const desk = await openDesk(home, 'no router');
  const account = accountOf({
    keyFile: path.join(config, 'identity.key'),
    policyFile: path.join(config, 'peers.json'),
  });
  const { device } = await desk.store.write((tx) => ownPlace(tx, systemRandom));
  return { home, desk: { ...desk, account }, key: signerOf(seed).key, device };
}

/** Each holds the other's key, and knows its device. */
async function befriend(one: Machine, other: Machine, name: string): Promise<void> {
  const file = path.join(one.home, '.config', 'postbell', 'peers.json');
  writeFileSync(file, `${JSON.stringify({ [name]: { key: other.key } }, null, 2)}\n`, { mode: 0o600 });
  const of = { peer_key: other.key, device: other.device };
  await one.desk.store.write((tx) => tx.devices.heard({ ...of, heard_ms: one.desk.clock.nowMs() }));
}

const homeOf = ({ home }: Machine, origin: string): Home => ({
  directory: home,
  project: home,
  env: { PATH: process.env.PATH ?? '', HOME: home, POSTBELL_HOME: home, POSTBELL_RELAYS: origin },
});

/** @returns messages a second, from the first that went out to the last that is known to be stored */
async function round(plan: Plan, nth: number, count: number): Promise<number> {
  const parent = path.join(plan.directory, `link-${nth}`);
  mkdirSync(path.join(parent, 'relay'), { recursive: true, mode: 0o700 });
  const relay = await startTelling(
    [plan.program, 'relay', '--listen', '127.0.0.1:0'],
    path.join(parent, 'relay'),
  );
  const { origin } = JSON.parse(relay.told) as { origin: string };
  const a = await machineIn(parent, 'a');
  const b = await machineIn(parent, 'b');
  await befriend(a, b, 'b');
  await befriend(b, a, 'a');
  const receiver = await startRouter(plan.program, homeOf(b, origin));
  for (let one = 0; one < count; one += 1) {
    const recipient = `inbox-${one % 8}`;
    const fields = { project: 'p', sender: 'a', recipient, idempotency_key: `k${one}`, payload, peer: 'b' };
    const sent = await sendToPeer(a.desk, fields, caller);
    if (isRefusal(sent)) throw new Error(sent.code);
  }
  const sender = await startRouter(plan.program, homeOf(a, origin));
  const left = (): number => a.desk.store.read((tx) => tx.outbox.totals().count);
  while (left() === count) await pause(1);
  const begun = performance.now();
  const from = left();
  while (left() > 0) await pause(5);
  const seconds = (performance.now() - begun) / 1_000;
  for (const process of [sender, receiver, relay]) await process.end();
  for (const { desk } of [a, b]) desk.close();
  return from / seconds;
}

export async function linkRate(plan: Plan): Promise<Outcome[]> {
  const count = plan.quick ? 500 : 2_000;
  const rates: number[] = [];
  const verifies: number[] = [];
  for (let nth = 0; nth < 3; nth += 1) {
    rates.push(await round(plan, nth, count));
    verifies.push(verifyRate());
  }
  return [
    {
      id: '17',
      what: 'messages of 1 KiB between two stores over one relay, to the receipt',
      unit: 'a second',
      measured: median(rates),
      yardstick: { what: 'verify on one core', value: median(verifies) },
      target: 0.2,
      stretch: 0.35,
      atLeast: true,
    },
  ];
}
