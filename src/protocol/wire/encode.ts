// Writes a record as the bytes that are signed.

import { assert } from '../assert.ts';
import { concat, uintBytes } from './bytes.ts';
import { readFields } from './decode.ts';
import { rowsOf } from './field-table.ts';
import { headerBytes } from './header.ts';
import { wireLimits } from './limits.ts';
import type { WireRecord } from './record.ts';

const unsigned = new Uint8Array(wireLimits.signatureBytes);

/**
 * The body: header and fields, without a signature. Requests were checked where they came in, so a record that cannot be written, or
 * that a reader would refuse, is a bug: nothing is signed that says something else than was meant.
 * @throws where a text has a lone surrogate, or a value breaks a rule or limit of its field; no value stands in the error
 */
export function encodeBody(record: WireRecord): Uint8Array {
  const values = record.fields as unknown as Readonly<Record<string, unknown>>;
  const rows = rowsOf(record.type);
  for (const called of Object.keys(values))
    assert(
      values[called] === undefined || rows.some((row) => row.name === called),
      `a ${record.type} has no field ${called}`,
    );
  const present = rows.filter((row) => values[row.name] !== undefined);
  const fields = present.flatMap((row) => {
    const value = row.kind.write(values[row.name]);
    return [Uint8Array.of(row.tag), uintBytes(value.length, 4), value];
  });
  const body = concat([headerBytes(record, present.length), ...fields]);
  const read = readFields(concat([body, unsigned]));
  assert(typeof read === 'object', `a ${record.type} to be signed is one that a reader takes`);
  return body;
}
