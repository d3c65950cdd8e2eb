import { createHash, timingSafeEqual } from 'node:crypto';

/** SHA-256 (FIPS 180-4) of the UTF-8 text, as 64 lower-case hex digits. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Compares two secrets in time that depends on neither. */
export function equalSecrets(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(sha256Hex(a)), Buffer.from(sha256Hex(b)));
}
