import { sha256Hex } from './hash.ts';

/** Any text as one file name without path meaning; a long one by its hash. */
export function fileName(text: string): string {
  const encoded = encodeURIComponent(text).replaceAll('.', '%2E').replaceAll('*', '%2A');
  return encoded.length <= 120 ? encoded : sha256Hex(text);
}
