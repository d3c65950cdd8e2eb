/** A stored time as it is returned: ISO 8601 UTC with milliseconds. One without a zone, as older rows have, is UTC. */
export function instantOf(stored: string): string {
  if (stored.endsWith('Z') && stored.length === 24) return stored;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(stored) ? stored : `${stored.replace(' ', 'T')}Z`;
  const ms = Date.parse(zoned);
  return Number.isNaN(ms) ? stored : new Date(ms).toISOString();
}
