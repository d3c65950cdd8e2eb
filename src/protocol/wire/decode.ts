// Reads the fields of a record, after the gate has let its sender through: the header before is read in header.ts. Whatever a writer
// of this format would not have written is refused; the first thing that is wrong, from the front, is the answer.

import { uintAt } from './bytes.ts';
import { fieldRow, isTagOfFormat, rowsOf } from './field-table.ts';
import { readHeader } from './header.ts';
import { wireLimits } from './limits.ts';
import type { FieldsRefusal, RecordType, WireRecord } from './record.ts';

const tagAndLengthBytes = 5;

interface RawField {
  tag: number;
  value: Uint8Array;
}

/** Cuts the body after its header into fields; undefined where it is not made of such. */
function rawFields(body: Uint8Array): RawField[] | undefined {
  const count = uintAt(body, wireLimits.headerBytes - 2, 2);
  const fields: RawField[] = [];
  let at: number = wireLimits.headerBytes;
  let last = -1;
  while (at < body.length) {
    if (body.length - at < tagAndLengthBytes) return undefined;
    const tag = body[at] as number;
    const length = uintAt(body, at + 1, 4);
    at += tagAndLengthBytes;
    // Nothing is there and empty: it would be another text for what is absent.
    if (tag <= last || length === 0 || length > body.length - at) return undefined;
    fields.push({ tag, value: body.subarray(at, at + length) });
    at += length;
    last = tag;
  }
  return fields.length === count ? fields : undefined;
}

/** The values by name, or why they are refused. */
function readValues(type: RecordType, raw: readonly RawField[]): Record<string, unknown> | FieldsRefusal {
  const values: Record<string, unknown> = {};
  let extensionsBytes = 0;
  for (const { tag, value } of raw) {
    if (tag >= wireLimits.extensionTagMin) {
      extensionsBytes += value.length;
      if (extensionsBytes > wireLimits.extensionsBytesMax) return 'too_large';
      continue;
    }
    const row = fieldRow(tag);
    if (row === undefined) return isTagOfFormat(tag) ? 'malformed' : 'unknown_field';
    if (!row.required.includes(type) && !row.optional.includes(type)) return 'malformed';
    const found = row.kind.read(value);
    if ('refused' in found) return found.refused;
    values[row.name] = found.value;
  }
  const isMissing = rowsOf(type).some((row) => row.required.includes(type) && values[row.name] === undefined);
  return isMissing ? 'malformed' : values;
}

/**
 * The whole record. `reserved`: the header has a flag, which this format keeps for a later one; `unknown_field`: a tag below 128 that
 * the format does not have, in a record that is otherwise cut soundly into fields.
 * @param bytes body and signature, as received; the signature is not looked at
 */
export function readFields(bytes: Uint8Array): WireRecord | FieldsRefusal {
  const read = readHeader(bytes);
  if (typeof read === 'string') return 'malformed';
  if (read.flags !== 0) return 'reserved';
  const raw = rawFields(read.body);
  if (raw === undefined) return 'malformed';
  const values = readValues(read.header.type, raw);
  return typeof values === 'string' ? values : ({ ...read.header, fields: values } as unknown as WireRecord);
}
