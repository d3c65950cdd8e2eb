// What is sealed: the length of the record, the record, zeros up to the next power of two. One record has one padding; a length
// tells an onlooker no more than its class.

import { assert } from '../assert.ts';
import { viewOf } from './bytes.ts';
import { wireLimits } from './limits.ts';

const lengthBytes = 4;

/** The padded length for a record of so many bytes. */
export function paddedBytes(recordBytes: number): number {
  let length: number = wireLimits.paddedBytesMin;
  while (length < lengthBytes + recordBytes) length *= 2;
  return length;
}

/** Whether some record is padded to this length. */
export function isPaddedLength(length: number): boolean {
  return length <= wireLimits.paddedBytesMax && length > 0 && paddedBytes(length - lengthBytes) === length;
}

/** @param record at most `recordBytesMax` */
export function pad(record: Uint8Array): Uint8Array {
  assert(record.length <= wireLimits.recordBytesMax, 'a record fits its largest padding');
  const padded = new Uint8Array(paddedBytes(record.length));
  viewOf(padded).setUint32(0, record.length);
  padded.set(record, lengthBytes);
  return padded;
}

/** The record; undefined where this is not how `pad` pads it. */
export function unpad(padded: Uint8Array): Uint8Array | undefined {
  if (!isPaddedLength(padded.length)) return undefined;
  const length = viewOf(padded).getUint32(0);
  if (length > wireLimits.recordBytesMax || paddedBytes(length) !== padded.length) return undefined;
  const end = lengthBytes + length;
  for (let at = end; at < padded.length; at += 1) if (padded[at] !== 0) return undefined;
  return padded.subarray(lengthBytes, end);
}
