// What is costly to work out of a public key is worked out once and kept for the keys used last. Public values only.

/** A function of 32 bytes that remembers its answers for at most `keysMax` keys, the one used longest ago out first. */
export function remembered<T>(keysMax: number, make: (key: Uint8Array) => T): (key: Uint8Array) => T {
  const known = new Map<string, T>();
  return (key) => {
    const name = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
    const found = known.has(name) ? (known.get(name) as T) : make(key);
    known.delete(name);
    known.set(name, found);
    if (known.size > keysMax) known.delete(known.keys().next().value as string);
    return found;
  };
}

/** More peers than a person has. A flood of strangers' keys costs time, not memory. */
export const keysRemembered = 1_024;
