// Requests that the library cannot read, as one whose `_meta` is no object: it drops them without a word, and a client would wait
// for ever. They are answered here.

import type { Readable, Writable } from 'node:stream';
import { deserializeMessage } from '@modelcontextprotocol/server';
import { isObject } from '../../protocol/json.ts';

/** The library's own bound of a line: it ends the connection there. */
const lineBytesMax = 10 * 1_048_576;
const invalidRequest = -32600;

/** Reads beside the library. Returns what ends that. */
export function answerFormless(input: Readable, output: Writable): () => void {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const read = (chunk: Buffer): void => {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      pieces.push(rest.subarray(0, end));
      const id = unanswered(Buffer.concat(pieces).toString('utf8'));
      if (id !== undefined) output.write(`${JSON.stringify(refusalOf(id))}\n`);
      pieces = [];
      bytes = 0;
      rest = rest.subarray(end + 1);
    }
    bytes += rest.length;
    if (bytes > lineBytesMax) stop();
    else pieces.push(rest);
  };
  const stop = (): void => {
    input.off('data', read);
    // Nobody reads any more: what is still open holds the process up.
    if (input.listenerCount('data') === 0) input.pause();
  };
  input.on('data', read);
  return stop;
}

const refusalOf = (id: string | number) => ({
  jsonrpc: '2.0',
  id,
  error: { code: invalidRequest, message: 'the request has not the form of one' },
});

/** The id of a request that the library does not hand on. */
function unanswered(line: string): string | number | undefined {
  try {
    deserializeMessage(line);
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
  }
  const message: unknown = JSON.parse(line);
  if (!isObject(message) || !('method' in message)) return undefined;
  const { id } = message;
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
}
