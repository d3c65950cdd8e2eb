// HTTP Message Signatures (RFC 9421) as relays ask for them: label `pb`, Ed25519, one list of components in one order. What the
// standard would allow beyond that is refused: nobody writes it, and two readers could understand it differently.

import { createHash } from 'node:crypto';
import { assert } from '../protocol/assert.ts';
import { base64url, bytesOfBase64url } from '../protocol/base64url.ts';
import { type Signer, verify } from './ed25519.ts';
import { keyBytes } from './key-text.ts';

/** What of a request is signed, beside its body. */
export interface SignedTarget {
  /** In capitals. */
  method: string;
  /** Host in lower case, and port unless it is the scheme's own. */
  authority: string;
  path: string;
  /** Empty, or from its question mark on. */
  query: string;
}

type Component = readonly [name: string, value: string];

/**
 * The signature base of RFC 9421, section 2.5.
 * @param components in the order in which `parameters` names them
 * @param parameters the value of `@signature-params`, as it stands in the header
 */
export function signatureBase(components: readonly Component[], parameters: string): string {
  return [...components, ['@signature-params', parameters] as const]
    .map(([name, value]) => `"${name}": ${value}`)
    .join('\n');
}

/** The value of Content-Digest (RFC 9530) for a body. */
export function contentDigest(body: Uint8Array): string {
  return `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
}

function componentsOf(target: SignedTarget, digest: string | undefined): Component[] {
  const { method, authority, path, query } = target;
  const components: Component[] = [
    ['@method', method],
    ['@authority', authority],
    ['@path', path],
    ['@query', query === '' ? '?' : query],
  ];
  return digest === undefined ? components : [...components, ['content-digest', digest]];
}

const componentList = (withDigest: boolean): string =>
  `("@method" "@authority" "@path" "@query"${withDigest ? ' "content-digest"' : ''})`;

/** A line of the base begins after a line feed: no value may have one. */
const isPlain = ({ method, authority, path, query }: SignedTarget): boolean =>
  [method, authority, path].every((value) => /^[!-~]+$/.test(value)) && /^(?:\?[!-~]*)?$/.test(query);

const tag = 'postbell-relay-1';
const nonceBytes = 16;

export interface SignedHeaders {
  'content-digest'?: string;
  'signature-input': string;
  signature: string;
}

/**
 * @param created Unix seconds
 * @param nonce 16 random bytes, used once
 * @param body undefined or empty: there is none, and no digest of it
 */
export function signRequest(
  request: SignedTarget & { body?: Uint8Array; created: number; nonce: Uint8Array; signer: Signer },
): SignedHeaders {
  const { body, created, nonce, signer } = request;
  assert(isPlain(request), 'a request to be signed is of visible ASCII');
  assert(Number.isSafeInteger(created) && created >= 0, 'a request is signed at a whole second');
  assert(nonce.length === nonceBytes, 'a nonce has 16 bytes');
  const digest = body === undefined || body.length === 0 ? undefined : contentDigest(body);
  const parameters = `${componentList(digest !== undefined)};created=${created};nonce="${base64url(nonce)}";keyid="${signer.key}";alg="ed25519";tag="${tag}"`;
  const signature = signer.sign(Buffer.from(signatureBase(componentsOf(request, digest), parameters)));
  return {
    ...(digest !== undefined && { 'content-digest': digest }),
    'signature-input': `pb=${parameters}`,
    signature: `pb=:${Buffer.from(signature).toString('base64')}:`,
  };
}

/** Header values as they were received; undefined: no such header. */
export interface RequestHeaders {
  signatureInput: string | undefined;
  signature: string | undefined;
  contentDigest: string | undefined;
}

export interface RequestSignature {
  /** 43 characters, the form alone checked. */
  keyId: string;
  /** Unix seconds. */
  created: number;
  /** 22 characters: 16 bytes in base64url. */
  nonce: string;
  /** The digest that is signed, as it stands in its header; undefined: the request says that it has no body. */
  digest: string | undefined;
  /** As they stand in the header, for the base. */
  parameters: string;
  /** 64. */
  signature: Uint8Array;
}

/**
 * `missing`: no signature; `components`, `parameters`: of another list than this product's; `key`, `signature`, `digest`: not in
 * their form.
 */
export type UnreadSignature = 'missing' | 'components' | 'parameters' | 'key' | 'signature' | 'digest';

const inputCharactersMax = 1_024;

/** Each once, in any order; nothing else. */
const forms: Readonly<Record<string, RegExp>> = {
  created: /^(?:0|[1-9][0-9]{0,14})$/,
  nonce: /^"[A-Za-z0-9_-]{22}"$/,
  keyid: /^"[^"\\]*"$/,
  alg: /^"ed25519"$/,
  tag: new RegExp(`^"${tag}"$`),
};

/** By name; undefined where they are not exactly those of `forms`. `text` begins with the first semicolon. */
function readParameters(text: string): Map<string, string> | undefined {
  const found = new Map<string, string>();
  for (const part of text.split(';').slice(1)) {
    const [name = '', ...rest] = part.split('=');
    const value = rest.join('=');
    if (!Object.hasOwn(forms, name) || found.has(name) || !forms[name]?.test(value)) return undefined;
    found.set(name, value);
  }
  return text.startsWith(';') && found.size === Object.keys(forms).length ? found : undefined;
}

/** The bytes between colons, in base64 with padding, written in the one way; undefined for anything else. */
function bytesBetween(text: string, start: string, length: number): Uint8Array | undefined {
  if (!text.startsWith(start) || text.length > start.length + 100) return undefined;
  const bytes = Buffer.from(text.slice(start.length, -1), 'base64');
  const same = `${start}${bytes.toString('base64')}:` === text;
  return same && bytes.length === length ? new Uint8Array(bytes) : undefined;
}

/** Reads the headers of a signed request; nothing is verified yet. */
export function readRequestSignature(headers: RequestHeaders): RequestSignature | UnreadSignature {
  const { signatureInput: input, signature: given } = headers;
  if (input === undefined || given === undefined) return 'missing';
  const withDigest = input.includes('"content-digest"');
  const start = `pb=${componentList(withDigest)}`;
  if (input.length > inputCharactersMax || !input.startsWith(start)) return 'components';
  const parameters = readParameters(input.slice(start.length));
  if (parameters === undefined) return 'parameters';
  const unquoted = (name: string): string => (parameters.get(name) ?? '').slice(1, -1);
  const [keyId, nonce] = [unquoted('keyid'), unquoted('nonce')];
  if (keyBytes(keyId) === undefined) return 'key';
  if (bytesOfBase64url(nonce)?.length !== nonceBytes) return 'parameters';
  const signature = bytesBetween(given, 'pb=:', 64);
  if (signature === undefined) return 'signature';
  // One that is not signed says nothing.
  const digest = withDigest ? headers.contentDigest : undefined;
  if (withDigest && (digest === undefined || bytesBetween(digest, 'sha-256=:', 32) === undefined))
    return 'digest';
  const created = Number(parameters.get('created'));
  return { keyId, created, nonce, digest, parameters: input.slice('pb='.length), signature };
}

/**
 * `signature`: the key did not sign this request; `digest`: it did, with another body.
 */
export type RequestFault = 'signature' | 'digest';

/**
 * Undefined: the key signed this request, with this body. Whether time, nonce and key will do is the reader's to ask.
 * @param body empty where there is none
 */
export function verifyRequest(
  read: RequestSignature,
  target: SignedTarget,
  body: Uint8Array,
): RequestFault | undefined {
  const key = keyBytes(read.keyId);
  if (key === undefined || !isPlain(target)) return 'signature';
  // A body that is not signed is nobody's.
  if (body.length > 0 && read.digest === undefined) return 'signature';
  const base = signatureBase(componentsOf(target, read.digest), read.parameters);
  if (!verify(key, Buffer.from(base), read.signature)) return 'signature';
  return read.digest === undefined || read.digest === contentDigest(body) ? undefined : 'digest';
}
