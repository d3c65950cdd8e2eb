// The fixed header: who says it to whom, and when. The one part of a record that is read before its sender is known.

import { assert } from '../assert.ts';
import { base64url, bytesOfBase64url } from '../base64url.ts';
import { bytesOfUuid, concat, uint64At, uintBytes, utf8, uuidText } from './bytes.ts';
import { wireLimits } from './limits.ts';
import type { RecordHeader, RecordType } from './record.ts';

const domain = utf8('postbell-1\0');

/** By number. The eighth is of the format, and no record that anybody takes from a queue. */
const types: readonly (RecordType | 'listing' | undefined)[] = [
  undefined,
  'message',
  'receipt',
  'pair_request',
  'pair_accept',
  'route',
  'query',
  'card',
  'listing',
];

const nobody = new Uint8Array(32);
const isNobody = (key: Uint8Array): boolean => key.every((byte) => byte === 0);

/** `framing`: these bytes are no record of this format; `listing`: one of the type that is not taken. */
export type HeaderRefusal = 'framing' | 'listing';

export interface ReadHeader {
  header: RecordHeader;
  /** As it stands; a record in which it is not zero is refused with its fields. */
  flags: number;
  /** What is signed: all but the signature. */
  body: Uint8Array;
  /** 32. */
  from: Uint8Array;
  /** 64. */
  signature: Uint8Array;
}

/** Reads the fixed header, and that the length can hold a signature; no field. `bytes` are those that were received. */
export function readHeader(bytes: Uint8Array): ReadHeader | HeaderRefusal {
  const signed = bytes.length - wireLimits.signatureBytes;
  if (signed < wireLimits.headerBytes || bytes.length > wireLimits.recordBytesMax) return 'framing';
  if (!domain.every((byte, at) => bytes[at] === byte)) return 'framing';
  const type = types[bytes[11] as number];
  const time = uint64At(bytes, 77);
  if (type === undefined || time === undefined) return 'framing';
  const from = bytes.subarray(13, 45);
  const to = bytes.subarray(45, 77);
  const addressed = type !== 'card' && type !== 'listing';
  if (!addressed && !isNobody(to)) return 'framing';
  if (type === 'listing') return 'listing';
  return {
    header: {
      type,
      from: base64url(from),
      to: addressed ? base64url(to) : undefined,
      time_ms: time,
      id: uuidText(bytes.subarray(85, 101)),
    },
    flags: bytes[12] as number,
    body: bytes.subarray(0, signed),
    from,
    signature: bytes.subarray(signed),
  };
}

/** The header of a record of `fieldCount` fields, 103 bytes. */
export function headerBytes(header: RecordHeader, fieldCount: number): Uint8Array {
  const from = bytesOfBase64url(header.from);
  const to = header.to === undefined ? nobody : bytesOfBase64url(header.to);
  const id = bytesOfUuid(header.id);
  assert(from?.length === 32 && to?.length === 32, 'keys of a record are 43 characters of base64url');
  assert(id !== undefined, 'the id of a record is a lower-case UUID');
  assert((header.to === undefined) === (header.type === 'card'), 'a card, and nothing else, is for nobody');
  assert(
    Number.isSafeInteger(header.time_ms) && header.time_ms >= 0,
    'the time of a record is whole milliseconds',
  );
  const type = types.indexOf(header.type);
  return concat([
    domain,
    Uint8Array.of(type, 0),
    from,
    to,
    uintBytes(header.time_ms, 8),
    id,
    uintBytes(fieldCount, 2),
  ]);
}
