// The connection to an ACP agent, whose lines are written by the test.

import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentRefused, type Link, LinkClosed, linkTo } from '../../src/hosts/acp/link.ts';
import { until } from '../process/home.ts';

let input: PassThrough;
let output: PassThrough;
let link: Link;
let sent: Record<string, unknown>[];
let questions: AbortSignal[];
let ends: (string | undefined)[];

beforeEach(() => {
  input = new PassThrough();
  output = new PassThrough();
  const mine: (string | undefined)[] = [];
  [sent, questions, ends] = [[], [], mine];
  input.on('data', (chunk) => {
    for (const line of String(chunk).trim().split('\n')) sent.push(JSON.parse(line) as never);
  });
  const onPermission = (_: unknown, withdrawn: AbortSignal): Promise<object> => {
    questions.push(withdrawn);
    return new Promise((answer) => withdrawn.addEventListener('abort', () => answer({ off: true })));
  };
  link = linkTo({ input, output }, { onUpdate: () => {}, onPermission }, (why) => mine.push(why));
});
afterEach(() => void output.end());

const says = (message: object): void => void output.write(`${JSON.stringify(message)}\n`);
/** The request as the agent gets it. */
async function asked(method: string): Promise<unknown> {
  await until('it is asked', () => sent.some((one) => one.method === method));
  return sent.find((one) => one.method === method)?.id;
}

describe('an answer of an ACP agent', () => {
  it.each([
    ['a result', { result: { stopReason: 'end_turn' } }, { stopReason: 'end_turn' }],
    ['a result and no error', { result: {}, error: null }, {}],
    ['neither', {}, undefined],
    ['an error without a number', { error: { message: 'no' } }, undefined],
    ['an error in words', { error: 'no' }, undefined],
    ['a result beside an error', { result: {}, error: { code: -32_603, message: 'no' } }, undefined],
    ['a result with an error in words', { result: {}, error: 'no' }, undefined],
  ])('that holds %s', async (_, holds, taken) => {
    const answer = link.request('session/prompt', {});
    says({ jsonrpc: '2.0', id: await asked('session/prompt'), ...holds });
    expect(await answer).toEqual(taken);
  });

  it.each([
    ['its reason', { code: -32_000, message: 'log in' }, 'log in'],
    ['no reason', { code: -32_000 }, ''],
  ])('that refuses, with %s', async (_, error, message) => {
    const answer = link.request('session/prompt', {});
    says({ id: await asked('session/prompt'), error });
    const refusal: unknown = await answer.catch((thrown: unknown) => thrown);
    expect(refusal).toBeInstanceOf(AgentRefused);
    expect(refusal).toMatchObject({ code: -32_000, message });
  });
});

it('a question that the agent takes back is withdrawn', async () => {
  const params = { sessionId: 'x', toolCall: { toolCallId: 'c' }, options: [] };
  says({ jsonrpc: '2.0', id: 'q1', method: 'session/request_permission', params });
  await until('it is asked', () => questions.length === 1);
  expect(questions[0]?.aborted).toBe(false);
  says({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 'q1' } });
  await until('it is withdrawn', () => questions[0]?.aborted === true);
});

describe('the end of the connection', () => {
  it('by the agent has no other cause', async () => {
    const answer = link.request('session/prompt', {});
    await asked('session/prompt');
    output.end();
    await expect(answer).rejects.toBeInstanceOf(LinkClosed);
    expect(ends).toEqual([undefined]);
  });

  it('by a message that is too large is told as that', async () => {
    const answer = link.request('session/prompt', {});
    await asked('session/prompt');
    output.write(Buffer.alloc(33 * 1_048_576, 'x'));
    await expect(answer).rejects.toBeInstanceOf(LinkClosed);
    expect(ends).toEqual(['sent a message of more than 32 MiB']);
  });
});
