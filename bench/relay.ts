// Targets 12, 15 and 16: items of 1 KiB posted to a relay, delivered and acknowledged, with 32 posts in flight; and what a relay
// holds in memory for queues and polls that only wait.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Signer, signerOf, verify } from '../src/crypto/ed25519.ts';
import { signRequest } from '../src/crypto/http-signature.ts';
import { systemClock } from '../src/platform/clock.ts';
import { systemRandom } from '../src/platform/random.ts';
import { startRelay } from '../src/relay/server.ts';
import { openRelayStore } from '../src/store/relay/open.ts';
import { jetStreamRate } from './jetstream.ts';
import { privateMebibytes } from './memory.ts';
import { median, type Outcome, type Plan, pause } from './metric.ts';
import { endAll, startTelling } from './program.ts';
import { RawLane } from './raw-http.ts';

const inFlight = 32;
const itemBytes = 1_024;
/** Of the address that requests are signed for. */
const authority = 'bench';
const owner = signerOf(new Uint8Array(32).fill(9));
const queue = `${owner.key}.${'0'.repeat(32)}`;
const queuePath = `/v1/queues/${queue}`;

interface RunningRelay {
  pid: number;
  port: number;
  end(): Promise<void>;
}

/** The relay in a process of its own, from the sources of the product. */
async function relayIn(
  directory: string,
  kind: 'relay-plain' | 'relay-proven',
  trace?: string,
): Promise<RunningRelay> {
  mkdirSync(directory, { recursive: true });
  const words = [process.argv[1] as string, '-', '--child', kind, '--dir', directory];
  const { pid, told, end } = await startTelling(words, directory, trace);
  return { pid, port: (JSON.parse(told) as { port: number }).port, end };
}

/** The process of a measurement: with signatures checked, or read and not checked. */
export async function relayChild(kind: string, directory: string): Promise<void> {
  const { verifyRequest } = await import('../src/crypto/http-signature.ts');
  const store = await openRelayStore({
    path: path.join(directory, 'relay.db'),
    clock: systemClock,
    random: systemRandom,
  });
  const relay = await startRelay({
    store,
    clock: systemClock,
    log: { info: () => {}, warn: () => {} },
    verify: kind === 'relay-proven' ? verifyRequest : () => undefined,
    host: '127.0.0.1',
    port: 0,
    authority,
  });
  process.on(
    'SIGTERM',
    () =>
      void relay
        .close()
        .then(() => store.close())
        .then(() => process.exit()),
  );
  process.stdout.write(`${JSON.stringify({ port: relay.port })}\n`);
}

const noBody = new Uint8Array();

function signed(
  signer: Signer,
  method: string,
  target: string,
  body: Uint8Array = noBody,
  headers = '',
): string {
  const [at = '', query] = target.split('?');
  const { 'content-digest': digest, ...proof } = signRequest({
    method,
    authority,
    path: at,
    query: query === undefined ? '' : `?${query}`,
    body,
    created: Math.floor(Date.now() / 1_000),
    nonce: systemRandom.bytes(16),
    signer,
  });
  const lines = Object.entries({ ...proof, ...(digest && { 'content-digest': digest }) });
  return `${method} ${target} HTTP/1.1\r\n${headers}${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
}

const register = (lane: RawLane, signer: Signer, at: string) => lane.ask(signed(signer, 'PUT', at));

const postHeaders = (nth: number): string =>
  `content-type: application/octet-stream\r\npostbell-item: ${nth.toString(16).padStart(32, '0')}\r\n`;

/** Posts, delivers and acknowledges `count` items. @returns items a second */
async function throughput(port: number, count: number, postsSigned: boolean): Promise<number> {
  const lanes = Array.from({ length: inFlight }, () => new RawLane(port));
  const reader = new RawLane(port);
  await register(reader, owner, queuePath);
  const body = systemRandom.bytes(itemBytes);
  const items = `${queuePath}/items`;
  // Signed beforehand: the sender's work is no part of the relay's.
  const headOf = (nth: number): string =>
    postsSigned
      ? signed(owner, 'POST', items, body, postHeaders(nth))
      : `POST ${items} HTTP/1.1\r\n${postHeaders(nth)}`;
  const heads = Array.from({ length: count }, (_, nth) => headOf(nth));
  let next = 0;
  const begun = performance.now();
  const post = async (lane: RawLane): Promise<void> => {
    while (next < heads.length) {
      const nth = next++;
      for (let head = heads[nth] as string; ; head = headOf(nth)) {
        const { status } = await lane.ask(head, body);
        if (status === 202) break;
        if (status !== 429) throw new Error(`a post was answered ${status}`);
        await pause(1);
      }
    }
  };
  const drain = async (): Promise<void> => {
    for (let taken = 0; taken < count; ) {
      const answer = await reader.ask(signed(owner, 'GET', `${items}?wait_ms=5000&max=64`));
      const found = (JSON.parse(answer.body) as { items: { token: string }[] }).items;
      const ack = Buffer.from(JSON.stringify({ ack: found.map(({ token }) => token) }));
      await reader.ask(
        signed(owner, 'POST', `${queuePath}/settle`, ack, 'content-type: application/json\r\n'),
        ack,
      );
      taken += found.length;
    }
  };
  await Promise.all([...lanes.map(post), drain()]);
  const seconds = (performance.now() - begun) / 1_000;
  for (const lane of [...lanes, reader]) lane.end();
  return count / seconds;
}

/** Signatures that one core verifies in a second. */
export function verifyRate(): number {
  const messages = Array.from({ length: 64 }, () => systemRandom.bytes(400));
  const signatures = messages.map((message) => owner.sign(message));
  const key = Buffer.from(owner.key, 'base64url');
  const count = 3_000;
  const begun = performance.now();
  for (let nth = 0; nth < count; nth += 1)
    verify(key, messages[nth % 64] as Uint8Array, signatures[nth % 64] as Uint8Array);
  return count / ((performance.now() - begun) / 1_000);
}

export async function relayItems(plan: Plan): Promise<Outcome[]> {
  const count = plan.quick ? 5_000 : 20_000;
  const rates: Record<'plain' | 'proven' | 'readers' | 'jetstream' | 'verify', number[]> = {
    plain: [],
    proven: [],
    readers: [],
    jetstream: [],
    verify: [],
  };
  let without: string | undefined;
  for (let round = 0; round < 3; round += 1) {
    const at = (name: string): string => path.join(plan.directory, `relay-${name}-${round}`);
    rates.plain.push(await inRelay(at('plain'), 'relay-plain', (port) => throughput(port, count, false)));
    rates.readers.push(
      await inRelay(at('readers'), 'relay-proven', (port) => throughput(port, count, false)),
    );
    // As many as can be signed before the first one is too old.
    rates.proven.push(await inRelay(at('proven'), 'relay-proven', (port) => throughput(port, 5_000, true)));
    rates.verify.push(verifyRate());
    const jetstream = await jetStreamRate(at('jetstream'), { count, inFlight, bytes: itemBytes });
    if (typeof jetstream === 'string') without = jetstream;
    else rates.jetstream.push(jetstream);
  }
  const plain = {
    what: `relay without signatures, ${inFlight} in flight, delivered and acked`,
    unit: 'a second' as const,
  };
  const beside: Outcome =
    without === undefined
      ? {
          id: '15',
          ...plain,
          measured: median(rates.plain),
          yardstick: { what: 'JetStream, file store', value: median(rates.jetstream) },
          target: 0.7,
          stretch: 1,
          atLeast: true,
        }
      : { id: '15', ...plain, measured: median(rates.plain), note: `no yardstick: ${without}` };
  const verifies = { what: 'verify on one core', value: median(rates.verify) };
  return [
    beside,
    {
      id: '16',
      what: 'relay, every request signed',
      unit: 'a second',
      measured: median(rates.proven),
      yardstick: verifies,
      target: 0.45,
      stretch: 0.9,
      atLeast: true,
    },
    {
      id: '16',
      what: 'relay, posts anonymous',
      unit: 'a second',
      measured: median(rates.readers),
      yardstick: verifies,
    },
    await syncsOfItems(plan),
  ];
}

async function inRelay(
  directory: string,
  kind: 'relay-plain' | 'relay-proven',
  work: (port: number) => Promise<number>,
): Promise<number> {
  const relay = await relayIn(directory, kind);
  const value = await work(relay.port);
  await relay.end();
  return value;
}

async function syncsOfItems(plan: Plan): Promise<Outcome> {
  const id = '12';
  const what = `syncs an item of the relay, ${inFlight} in flight, delivered and acked`;
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
  } catch {
    return { id, what, why: 'needs strace' };
  }
  const log = path.join(plan.directory, 'relay-syncs.log');
  const relay = await relayIn(path.join(plan.directory, 'relay-syncs'), 'relay-plain', log);
  const count = 4_000;
  await throughput(relay.port, count, false);
  await endAll();
  const syncs = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => /\bf(data)?sync\(/.test(line)).length;
  return { id, what, unit: 'a record', measured: syncs / count, target: 0.2, stretch: 0.05 };
}

const idleQueues = 10_000;
const waitingPolls = 1_000;
const queuesOfKey = 16;

export async function relayMemory({ directory }: Plan): Promise<Outcome[]> {
  const id = 'relay';
  const what = `memory of a relay with ${idleQueues} idle queues and ${waitingPolls} waiting polls`;
  if (process.platform !== 'linux') return [{ id, what, why: 'needs /proc (Linux)' }];
  const relay = await relayIn(path.join(directory, 'relay-memory'), 'relay-proven');
  await pause(1_000);
  const fresh = privateMebibytes(relay.pid);
  const signers = Array.from({ length: Math.ceil(idleQueues / queuesOfKey) }, (_, nth) => {
    const seed = new Uint8Array(32);
    new DataView(seed.buffer).setUint32(0, nth + 1);
    return signerOf(seed);
  });
  const queues = Array.from({ length: idleQueues }, (_, nth) => {
    const signer = signers[Math.floor(nth / queuesOfKey)] as Signer;
    return { signer, at: `/v1/queues/${signer.key}.${String(nth).padStart(32, '0')}` };
  });
  const lanes = Array.from({ length: 8 }, () => new RawLane(relay.port));
  await Promise.all(
    lanes.map(async (lane, nth) => {
      for (let one = nth; one < queues.length; one += lanes.length) {
        const { signer, at } = queues[one] as (typeof queues)[number];
        await register(lane, signer, at);
      }
    }),
  );
  await pause(2_000);
  const idle = privateMebibytes(relay.pid);
  const polls = queues.slice(0, waitingPolls).map(({ signer, at }) => {
    const lane = new RawLane(relay.port);
    lane.ask(signed(signer, 'GET', `${at}/items?wait_ms=55000`)).catch(() => {});
    return lane;
  });
  await pause(4_000);
  const waiting = privateMebibytes(relay.pid);
  for (const lane of [...lanes, ...polls]) lane.end();
  await relay.end();
  const note = `fresh ${fresh.toFixed(1)}, with the queues ${idle.toFixed(1)} MiB; a waiting poll ${(((waiting - idle) * 1_024) / waitingPolls).toFixed(1)} KiB`;
  return [
    {
      id,
      what,
      unit: 'MiB',
      measured: waiting,
      yardstick: { what: 'the same, just started', value: fresh },
      note,
    },
  ];
}
