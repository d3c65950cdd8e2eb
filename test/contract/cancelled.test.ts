// A call that its host interrupts: what waited waits no more, and what was committed stays.

import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { serveMcp } from '../../src/surfaces/mcp/server.ts';
import type { ToolContext } from '../../src/surfaces/mcp/tools.ts';
import { settle } from './clock.ts';
import { alice, openScene, type Scene } from './desk.ts';

let desk: Scene;
let input: PassThrough;
let answers: string;
/** Those that wait to be touched. */
let watching = 0;
let close = async (): Promise<void> => {};

beforeEach(async () => {
  desk = await openScene();
  watching = 0;
  const wake = {
    touch: () => desk.wake.touch(),
    watch: (look: () => void) => {
      watching += 1;
      const unwatch = desk.wake.watch(look);
      return () => {
        watching -= 1;
        unwatch();
      };
    },
  };
  const context: ToolContext = {
    desk: { ...desk, wake },
    caller: () => alice,
    inTurn: () => {},
    project: async () => 'shop',
    summarize: async () => ({}),
  };
  input = new PassThrough();
  const output = new PassThrough();
  answers = '';
  output.on('data', (chunk: Buffer) => (answers += chunk.toString('utf8')));
  const server = await serveMcp({
    context: () => context,
    input,
    output,
    onInitialized: () => {},
    onClosed: () => {},
  });
  close = () => server.close();
  const clientInfo = { name: 'codex-mcp-client', version: '1' };
  say({
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  });
  say({ method: 'notifications/initialized' });
  await settled();
});
afterEach(() => close());

const say = (message: object): void =>
  void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const settled = async (): Promise<void> => {
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
  await settle();
};
const call = (id: number, args: object): void =>
  say({ id, method: 'tools/call', params: { name: 'message', arguments: args } });

it('[HOST-198] a waiting poll and a send that waits for its reply stop waiting; the message that was sent is stored', async () => {
  call(1, { action: 'poll', recipient: 'bob', wait_ms: 30_000 });
  const letter = { sender: 'alice', recipient: 'carol', payload: 'hello', idempotency_key: 'k' };
  call(2, { action: 'send', ...letter, reply_wait_ms: 30_000 });
  await settled();
  expect(watching).toBe(2);
  expect(desk.rows('SELECT count(*) AS n FROM message')).toEqual([{ n: 1 }]);
  say({
    method: 'notifications/cancelled',
    params: { requestId: 1, reason: 'MCP request cancelled by caller' },
  });
  await settled();
  expect(watching).toBe(1);
  say({
    method: 'notifications/cancelled',
    params: { requestId: 2, reason: 'MCP request cancelled by caller' },
  });
  await settled();
  expect(watching).toBe(0);
  // Nobody is answered who no longer asks; the next call is.
  expect(answers).not.toMatch(/"id":[12]\b/);
  call(3, { action: 'poll', recipient: 'carol' });
  await settled();
  expect(answers).toMatch(/message_available[^\n]*"id":3\b/);
});
