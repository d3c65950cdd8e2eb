/** 32 lower-case hex digits in the layout of a UUID (RFC 9562, section 4); no version bits are set. */
export const uuidOf = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
