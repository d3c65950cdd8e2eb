// Which addresses are in public: what a peer names as its relay must not lead into this machine or its network.

import { BlockList, isIP } from 'node:net';

/** IANA special-purpose registries (RFC 6890 and its successors): loopback, private, link-local, shared, documentation, multicast, reserved. */
const closed: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.0.2.0', 24, 'ipv4'],
  ['192.88.99.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['198.51.100.0', 24, 'ipv4'],
  ['203.0.113.0', 24, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['2001::', 23, 'ipv6'],
  ['2001:db8::', 32, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['3fff::', 20, 'ipv6'],
];

const list = new BlockList();
for (const [network, prefix, family] of closed) list.addSubnet(network, prefix, family);

/** All of IPv6 that is given out to the internet; what is not in it carries an IPv4 address, or stays in a network. */
const open = new BlockList();
open.addSubnet('2000::', 3, 'ipv6');
const mapped = new BlockList();
mapped.addSubnet('0.0.0.0', 0, 'ipv4');

/** @param address an IPv4 or IPv6 address without brackets; a mapped IPv4 address counts as what it maps */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  if (family === 4) return !list.check(address, 'ipv4');
  const isOpen = open.check(address, 'ipv6') || mapped.check(address, 'ipv6');
  return isOpen && !list.check(address, 'ipv6');
}
