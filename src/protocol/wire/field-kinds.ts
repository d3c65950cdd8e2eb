// What a field's value can be: how it is written as bytes, and what of received bytes is refused. `write` takes values of our own,
// and what is wrong with one is a bug; `read` takes anything.

import { assert } from '../assert.ts';
import { hex } from '../id.ts';
import { checkClaimedName } from '../names/petname.ts';
import { isCanonicalOrigin } from '../origin.ts';
import { characters, isWellFormed, readName } from '../scope.ts';
import { bytesOfHex, bytesOfUuid, concat, textOfUtf8, uint64At, uintBytes, utf8, uuidText } from './bytes.ts';
import { wireLimits } from './limits.ts';
import type { FieldsRefusal } from './record.ts';

/** A value, or why these bytes are none. */
export type Read<T> = { value: T } | { refused: FieldsRefusal };

export interface Kind<T> {
  /** @param bytes never empty */
  read(bytes: Uint8Array): Read<T>;
  write(value: T): Uint8Array;
}

const malformed = { refused: 'malformed' } as const;
const tooLarge = { refused: 'too_large' } as const;

const given = <T>(value: T | undefined): Read<T> => (value === undefined ? malformed : { value });

/** The bytes of well-formed text: a lone surrogate has none, and is never signed as something else. */
function textBytes(text: string): Uint8Array {
  assert(isWellFormed(text), 'text to be signed has no lone surrogate');
  return utf8(text);
}

interface TextBounds {
  bytesMax?: number;
  charactersMax?: number;
}

/** UTF-8 within its bounds; `refuse` says what else is not taken. */
export function text(bounds: TextBounds, refuse: (value: string) => boolean = () => false): Kind<string> {
  const { charactersMax = Number.POSITIVE_INFINITY, bytesMax = 4 * charactersMax } = bounds;
  return {
    read(bytes) {
      if (bytes.length > bytesMax) return tooLarge;
      const value = textOfUtf8(bytes);
      if (value === undefined) return malformed;
      if (characters(value) > charactersMax) return tooLarge;
      return refuse(value) ? malformed : { value };
    },
    write: textBytes,
  };
}

/** A project, recipient or session, as every surface stores one: NFC, trimmed, no file path. */
export const name: Kind<string> = text(
  { charactersMax: wireLimits.nameCharactersMax },
  (value) => readName('name', value) !== value,
);

export const claimedName: Kind<string> = text(
  { charactersMax: wireLimits.claimedNameCharactersMax, bytesMax: wireLimits.claimedNameBytesMax },
  (value) => checkClaimedName(value) !== undefined,
);

export const jsonText: Kind<string> = text({ bytesMax: wireLimits.payloadBytesMax }, (value) => {
  try {
    JSON.parse(value);
    return false;
  } catch {
    return true;
  }
});

/** One byte that stands for a word. */
export function word<W extends string>(words: Readonly<Record<number, W>>): Kind<W> {
  const numbers = new Map(Object.entries(words).map(([number, known]) => [known, Number(number)]));
  return {
    read: (bytes) => (bytes.length === 1 ? given(words[bytes[0] as number]) : malformed),
    write(value) {
      const number = numbers.get(value);
      assert(number !== undefined, 'a word of a record is one of its list');
      return Uint8Array.of(number);
    },
  };
}

export const byte: Kind<number> = {
  read: (bytes) => (bytes.length === 1 ? given(bytes[0]) : malformed),
  write(value) {
    assert(
      Number.isInteger(value) && value >= 0 && value < 256,
      'a byte of a record is a whole number below 256',
    );
    return Uint8Array.of(value);
  },
};

/** Stands there or not; its one byte is 1. */
export const flag: Kind<true> = {
  read: (bytes) => (bytes.length === 1 && bytes[0] === 1 ? { value: true } : malformed),
  write: () => Uint8Array.of(1),
};

/** Unix ms. */
export const time: Kind<number> = {
  read: (bytes) => (bytes.length === 8 ? given(uint64At(bytes, 0)) : malformed),
  write(value) {
    assert(Number.isSafeInteger(value) && value >= 0, 'a time of a record is whole milliseconds');
    return uintBytes(value, 8);
  },
};

/** Id of a record. */
export const recordId: Kind<string> = {
  read: (bytes) => (bytes.length === 16 ? { value: uuidText(bytes) } : malformed),
  write(value) {
    const bytes = bytesOfUuid(value);
    assert(bytes !== undefined, 'the id of a record is a lower-case UUID');
    return bytes;
  },
};

/** Bytes that are shown as lower-case hex. */
export function hexOf(length: number): Kind<string> {
  return {
    read: (bytes) => (bytes.length === length ? { value: hex(bytes) } : malformed),
    write(value) {
      const bytes = bytesOfHex(value, length);
      assert(bytes !== undefined, 'an id or mark of a record is lower-case hex');
      return bytes;
    },
  };
}

/** Values of one length, one after the other. */
export function listOf<T>(kind: Kind<T>, bytesEach: number, countMax: number): Kind<readonly T[]> {
  return {
    read(bytes) {
      if (bytes.length % bytesEach !== 0) return malformed;
      if (bytes.length > bytesEach * countMax) return tooLarge;
      const values: T[] = [];
      for (let at = 0; at < bytes.length; at += bytesEach) {
        const one = kind.read(bytes.subarray(at, at + bytesEach));
        if ('refused' in one) return one;
        values.push(one.value);
      }
      return { value: values };
    },
    write: (values) => concat(values.map((value) => kind.write(value))),
  };
}

/** Origins of relays, a line each. */
export const origins: Kind<readonly string[]> = {
  read(bytes) {
    if (bytes.length > wireLimits.relaysBytesMax) return tooLarge;
    const lines = textOfUtf8(bytes)?.split('\n');
    if (lines === undefined) return malformed;
    if (lines.length > wireLimits.relaysMax) return tooLarge;
    const sound = lines.every(isCanonicalOrigin) && new Set(lines).size === lines.length;
    return sound ? { value: lines } : malformed;
  },
  write: (values) => textBytes(values.join('\n')),
};
