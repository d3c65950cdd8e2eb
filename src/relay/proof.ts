// Who asks: a request for a queue is signed by the queue's own key, for this relay, now, and once (docs/spec/relay.md,
// section 3). What costs least is asked first.

import { readRequestSignature, type SignedTarget, type verifyRequest } from '../crypto/http-signature.ts';
import type { Clock } from '../ports/clock.ts';
import { relayLimits } from '../protocol/relay-http.ts';
import { Refused } from './answers.ts';
import type { Nonces } from './nonces.ts';

/** A request as it came, byte by byte. */
export interface AskedRequest extends Omit<SignedTarget, 'authority'> {
  header(name: string): string | undefined;
  /** Empty where there is none. */
  body: Uint8Array;
}

/** The authority that requests are signed for: as the operator said, else as the first one that proved its key did. */
export interface Authority {
  known: string | undefined;
}

export interface Gate {
  /** @param owner whose key it must be; undefined where any key may sign */
  check(request: AskedRequest, owner: string | undefined): Refused | undefined;
}

export interface GateParts {
  verify: typeof verifyRequest;
  clock: Clock;
  nonces: Nonces;
  authority: Authority;
  /** Told of the authority that the first proof was made for. */
  learned(authority: string): void;
}

export function gateOf({ verify, clock, nonces, authority, learned }: GateParts): Gate {
  return {
    check: ({ header, body, ...target }, owner) => {
      const read = readRequestSignature({
        signatureInput: header('signature-input'),
        signature: header('signature'),
        contentDigest: header('content-digest'),
      });
      if (read === 'missing') return unproven('the request is not signed');
      if (typeof read === 'string') return unproven(`the signature is not of this relay's kind (${read})`);
      if (owner !== undefined && read.keyId !== owner)
        return new Refused('forbidden', 'the queue belongs to another key');
      const nowMs = clock.nowMs();
      if (Math.abs(nowMs - read.created * 1_000) > relayLimits.clockSkewMs)
        return new Refused('clock', 'the request was signed by another time than this relay has', { nowMs });
      const asked = authority.known ?? header('host')?.toLowerCase() ?? '';
      const fault = verify(read, { ...target, authority: asked }, body);
      if (fault === 'digest')
        return new Refused('bad_request', 'the body is not the one that its digest was made of');
      if (fault !== undefined) return unproven('the signature does not hold here');
      const taken = nonces.take(read.nonce);
      if (taken === 'full') return new Refused('relay_full', 'too many requests in two minutes');
      if (taken === 'seen') return unproven('the request was taken before');
      if (authority.known === undefined) {
        authority.known = asked;
        learned(asked);
      }
      return undefined;
    },
  };
}

const unproven = (message: string): Refused => new Refused('bad_signature', message);
