// The yardstick of the relay: NATS JetStream with its file store, on the server of the distribution. Its acknowledgement of a post
// is no sync of the disk.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { pause } from './metric.ts';

interface Load {
  count: number;
  inFlight: number;
  bytes: number;
}

/** Messages a second, stored, delivered and acknowledged; or why that cannot be measured here. */
export async function jetStreamRate(directory: string, load: Load): Promise<number | string> {
  try {
    execFileSync('nats-server', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'there is no nats-server on this machine';
  }
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const words = ['--addr', '127.0.0.1', '--port', String(port), '--jetstream', '--store_dir', directory];
  const server = spawn('nats-server', words, { stdio: 'ignore' });
  const exited = new Promise((resolve) => server.once('exit', resolve));
  try {
    const connection = await patientlyConnected(port);
    const rate = await oneRound(connection, load);
    await connection.close();
    return rate;
  } finally {
    server.kill('SIGKILL');
    await exited;
  }
}

async function oneRound(connection: NatsConnection, { count, inFlight, bytes }: Load): Promise<number> {
  const manager = await jetstreamManager(connection);
  await manager.streams.add({
    name: 'Q',
    subjects: ['q.>'],
    storage: StorageType.File,
    retention: RetentionPolicy.Workqueue,
  });
  await manager.consumers.add('Q', {
    durable_name: 'd',
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 256,
  });
  const stream = jetstream(connection);
  const consumer = await stream.consumers.get('Q', 'd');
  const body = new Uint8Array(bytes);
  let next = 0;
  const begun = performance.now();
  const lane = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await stream.publish(`q.${next}`, body);
    }
  };
  const drain = async (): Promise<void> => {
    let taken = 0;
    const messages = await consumer.consume({ max_messages: 256 });
    for await (const message of messages) {
      message.ack();
      taken += 1;
      if (taken === count) break;
    }
  };
  await Promise.all([...Array.from({ length: inFlight }, lane), drain()]);
  return count / ((performance.now() - begun) / 1_000);
}

async function patientlyConnected(port: number): Promise<NatsConnection> {
  for (let tries = 0; ; tries += 1)
    try {
      return await connect({ servers: `127.0.0.1:${port}`, reconnect: false });
    } catch (error) {
      if (tries === 100) throw error;
      await pause(50);
    }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
