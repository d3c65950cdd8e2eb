// A session that nobody named has a principal made of its id. After /clear it has two ids and so two such names: each
// of them reaches it. A name that was declared is one and stays one.

import type { Tx } from '../ports/store.ts';
import { sessionOfScopedPrincipal } from '../protocol/scope.ts';

/** Every name under which the inbox of `principal` is reached; the name itself first. */
export function namesOf(tx: Tx, principal: string): string[] {
  const id = sessionOfScopedPrincipal(principal);
  if (id === undefined) return [principal];
  const prefix = principal.slice(0, -id.length);
  const others = tx.identity.chain(id).map((other) => `${prefix}${other}`);
  return [principal, ...others.filter((name) => name !== principal)];
}
