// What a command reads from stdin. It is never echoed.

import type { Readable } from 'node:stream';
import { Refusal, type Result } from '../../protocol/errors.ts';
import type { Json } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';

/** Far beyond what a payload may be, so that a refusal can say how large it was. */
const bytesMax = 4 * limits.payloadBytesMax;

/** The whole input as text: bytes are joined before decoding. Refuses invalid UTF-8. */
export async function readText(input: Readable): Promise<Result<string>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    bytes += (chunk as Buffer).length;
    if (bytes > bytesMax)
      return new Refusal('payload_too_large', `the input has more than ${bytesMax} bytes`);
    chunks.push(chunk as Buffer);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch {
    return new Refusal('invalid_request', 'the input is not valid UTF-8');
  }
}

export function readJson(text: string): Result<Json> {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return new Refusal('invalid_request', 'the input is not valid JSON');
  }
}
