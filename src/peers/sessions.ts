import type { Desk } from '../mailbox/desk.ts';
import type { Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';

/** Who is live in the project: here by the router, and on the machines of a peer by their cards. */
export async function discoverSessions(
  desk: Desk,
  { peer, ...request }: { project: string; peer?: string; limit?: number; detail?: boolean },
): Promise<Result<object>> {
  // Loaded where somebody asks for it, with the cryptography that reads cards.
  if (peer !== undefined) return (await import('./discover.ts')).discoverPeer(desk, { ...request, peer });
  return { cards: await desk.router.discover({ limit: limits.discoverCountDefault, ...request }) };
}
