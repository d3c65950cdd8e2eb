// The id of a Codex thread: a UUID, whatever its version, in either case.

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isThreadId = (id: string): boolean => shape.test(id);

/** Two spellings of one thread. */
export const sameThread = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
