// Who asks: a request for a queue is signed by the queue's own key, for this relay, now, and once (docs/spec/relay.md,
// section 3).

import type { Clock } from '../ports/clock.ts';
import { relayLimits } from '../protocol/relay-http.ts';
import { Refused } from './answers.ts';
import type { Nonces } from './nonces.ts';

/** A request as it came, byte by byte. */
export interface SignedRequest {
  method: string;
  authority: string;
  path: string;
  /** With its question mark; that alone where there is none. */
  query: string;
  header(name: string): string | undefined;
  /** Absent where it is empty. */
  body: Uint8Array | undefined;
}

export interface Proven {
  key: string;
  createdMs: number;
  nonce: string;
}

/** Checks the signature and the digest of the body, and nothing else. */
export type RequestProof = (request: SignedRequest) => Proven | 'unsigned' | 'bad_digest' | 'bad_signature';

/** The authority that requests are signed for: as the operator said, else as the first one that proved its key did. */
export interface Authority {
  known: string | undefined;
}

export interface Gate {
  /** @param owner whose key it must be; undefined where any key may sign */
  check(request: Omit<SignedRequest, 'authority'>, owner: string | undefined): Proven | Refused;
}

export function gateOf({
  proof,
  clock,
  nonces,
  authority,
}: {
  proof: RequestProof;
  clock: Clock;
  nonces: Nonces;
  authority: Authority;
}): Gate {
  const refusalOf = ({ key, createdMs, nonce }: Proven, owner: string | undefined): Refused | undefined => {
    if (owner !== undefined && key !== owner)
      return new Refused('forbidden', 'the queue belongs to another key');
    const nowMs = clock.nowMs();
    if (Math.abs(nowMs - createdMs) > relayLimits.clockSkewMs)
      return new Refused('clock', 'the request was signed by another time than this relay has', { nowMs });
    const taken = nonces.take(nonce);
    if (taken === 'seen') return new Refused('bad_signature', 'the request was taken before');
    return taken === 'full' ? new Refused('relay_full', 'too many requests in two minutes') : undefined;
  };

  return {
    check: (request, owner) => {
      const asked = authority.known ?? request.header('host')?.toLowerCase() ?? '';
      const proven = proof({ ...request, authority: asked });
      if (proven === 'unsigned') return new Refused('bad_signature', 'the request is not signed');
      if (proven === 'bad_digest')
        return new Refused('bad_request', 'the body is not the one that its digest was made of');
      if (proven === 'bad_signature') return new Refused('bad_signature', 'the signature does not hold here');
      const refusal = refusalOf(proven, owner);
      if (refusal !== undefined) return refusal;
      authority.known ??= asked;
      return proven;
    },
  };
}
