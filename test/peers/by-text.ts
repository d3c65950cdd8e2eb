import type { Json } from '../../src/protocol/json.ts';

/** Puts bodies in an order of their own, for tests that do not care in which they came. */
export const byText = (a: Json, b: Json): number => JSON.stringify(a).localeCompare(JSON.stringify(b));
