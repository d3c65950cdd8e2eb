// Which of two product versions is older: Semantic Versioning 2.0.0, section 11. What is no such version is unreadable.

interface Version {
  numbers: readonly string[];
  prerelease: readonly string[];
}

const number = '(0|[1-9]\\d*)';
const form = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`,
);

function readVersion(text: unknown): Version | undefined {
  const found = typeof text === 'string' ? form.exec(text) : null;
  if (found === null) return undefined;
  const prerelease = found[4]?.split('.') ?? [];
  const padded = prerelease.some((part) => /^0\d+$/.test(part));
  return padded ? undefined : { numbers: found.slice(1, 4), prerelease };
}

export function isVersion(text: unknown): text is string {
  return readVersion(text) !== undefined;
}

/** Below 0 where `left` is older, above 0 where it is newer; undefined where one of them is unreadable. */
export function compareVersions(left: string, right: string): number | undefined {
  const a = readVersion(left);
  const b = readVersion(right);
  if (a === undefined || b === undefined) return undefined;
  const byNumbers = compareParts(a.numbers, b.numbers);
  if (byNumbers !== 0) return byNumbers;
  // A release is newer than each of its pre-releases.
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return b.prerelease.length - a.prerelease.length;
  return compareParts(a.prerelease, b.prerelease);
}

/** Part by part; where all that both have are equal, the longer list is the newer. */
function compareParts(left: readonly string[], right: readonly string[]): number {
  for (const [index, part] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    const order = comparePart(part, other);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** Numbers by their value, words by code unit, a number before a word. */
function comparePart(left: string, right: string): number {
  if (left === right) return 0;
  const numeric = [left, right].map((part) => /^\d+$/.test(part));
  if (numeric[0] !== numeric[1]) return numeric[0] ? -1 : 1;
  if (numeric[0] && left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}
