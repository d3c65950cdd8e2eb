// Which addresses a relay's name may lead to. An origin that somebody else told is no way into this machine or its network: what
// counts is the very address that is connected to, so that a name cannot answer twice in different ways.

import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** `public`: https, and addresses of the open internet alone. `any`: the operator listed the origin. */
export type Reach = 'public' | 'any';

/** What is not of the open internet: RFC 6890 and its registries, with link-local, private, shared and documentation ranges. */
const closed = new BlockList();
const closed4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];
for (const [net, prefix] of closed4) closed.addSubnet(net, prefix, 'ipv4');
/** Of IPv6, only what is given out to the internet is open; within it, what carries or maps an IPv4 address is not. */
const open6 = new BlockList();
open6.addSubnet('2000::', 3, 'ipv6');
const closed6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];
for (const [net, prefix] of closed6) closed.addSubnet(net, prefix, 'ipv6');

/** An IPv4 address in IPv6 clothes counts as what it is: none that is mapped lies in 2000::/3. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !closed.check(address, 'ipv4');
  return family === 6 && open6.check(address, 'ipv6') && !closed.check(address, 'ipv6');
}

/** Why a name was not connected to. */
export const notPublic = 'ERR_RELAY_NOT_PUBLIC';

const refusal = (hostname: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${hostname} is no public address`), { code: notPublic });

export type Resolve = (hostname: string, then: (error: Error | null, found: LookupAddress[]) => void) => void;

const bySystem: Resolve = (hostname, then) =>
  lookup(hostname, { all: true }, (error, found) => then(error, found ?? []));

/** A `lookup` for a connection that resolves as the system does and refuses the name if any of its addresses is not public. */
export function publicLookup(resolve: Resolve = bySystem): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, found) => {
      const first = found[0];
      if (error !== null || first === undefined) callback(error ?? refusal(hostname), '', 0);
      else if (!found.every(({ address }) => isPublicAddress(address))) callback(refusal(hostname), '', 0);
      else if (options.all) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}
