// A signed record: its body, then 64 bytes of signature over exactly that body. What is checked is what was received, byte for byte;
// nothing is written anew before.

import { assert } from '../protocol/assert.ts';
import { concat } from '../protocol/wire/bytes.ts';
import { encodeBody } from '../protocol/wire/encode.ts';
import { readHeader } from '../protocol/wire/header.ts';
import type { WireRecord } from '../protocol/wire/record.ts';
import { type Signer, verify } from './ed25519.ts';

/** @throws where the record cannot be written (see `encodeBody`) */
export function signRecord(record: WireRecord, signer: Signer): Uint8Array {
  assert(record.from === signer.key, 'a record is signed by the key that it is from');
  const body = encodeBody(record);
  return concat([body, signer.sign(body)]);
}

/** Whether the signature is that of the key in the header. Looks at no field. */
export function verifyRecord(bytes: Uint8Array): boolean {
  const read = readHeader(bytes);
  return typeof read !== 'string' && verify(read.from, read.body, read.signature);
}
