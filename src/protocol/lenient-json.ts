// JSON of other programs, as people edit it: with a byte order mark, comments and trailing commas.

export interface LenientJson {
  value: unknown;
  /** Whether a plain reader takes it, too; a byte order mark apart. */
  strict: boolean;
}

/** Strings stay as they are, whatever they hold. */
const comments = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const trailingCommas = /"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g;
const without = (text: string, parts: RegExp): string =>
  text.replace(parts, (part) => (part.startsWith('"') ? part : ' '));

/** Undefined where it is no JSON even so. */
export function readLenientJson(text: string): LenientJson | undefined {
  const plain = text.replace(/^\uFEFF/, '');
  const strict = parse(plain);
  if (strict !== undefined) return { value: strict.value, strict: true };
  const lenient = parse(without(without(plain, comments), trailingCommas));
  return lenient && { value: lenient.value, strict: false };
}

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
