// The account's identity over its key file, and its policy over the owner's file. The files are read at each call; what they say is
// worked out anew only where their text is another.

import { lstatSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isUsableKey, signerOf } from '../crypto/ed25519.ts';
import { keyBytes, keyText } from '../crypto/key-text.ts';
import type { Account, Identity, IdentityFile } from '../ports/account.ts';
import { Refusal, type Result } from '../protocol/errors.ts';
import type { Policy } from '../protocol/policy.ts';
import { emptyPolicy, readPolicy } from '../protocol/policy-text.ts';
import { createPrivateOnce, ensureDirectory, replacePrivateFile } from './files.ts';
import { insecureDirectory, readOwnersFile } from './owners-file.ts';

const othersMask = 0o077;
/** The seed, a newline and what white space an editor leaves. */
const keyFileBytesMax = 1_024;

export interface AccountPaths {
  keyFile: string;
  policyFile: string;
  /** Where it was made already: that it is not there is somebody's slip, and takes no trust back. */
  policyExists?: boolean;
}

export function accountOf({ keyFile, policyFile, policyExists = false }: AccountPaths): Account {
  let identity: { text: string; value: Result<Identity> } | undefined;
  let policy: { text: string; value: Result<Policy> } | undefined;
  return {
    identity: () => {
      const text = readKeyFile(keyFile);
      if (text instanceof Refusal) return text;
      if (identity?.text !== text) identity = { text, value: identityOf(text, keyFile) };
      return identity.value;
    },
    policy: () => {
      const read = readOwnersFile(policyFile);
      if (read instanceof Refusal) return read;
      if (read === undefined && policyExists) return goneFrom(policyFile);
      // An empty file is none of ours: somebody may be writing it this very moment.
      const text = read ?? emptyPolicy;
      if (policy?.text !== text) policy = { text, value: policyOf(text, policyFile) };
      return policy.value;
    },
  };
}

const goneFrom = (file: string): Refusal =>
  new Refusal('store_unreadable', `${file} is gone; put it back, or write {} there to trust nobody`, {
    path: file,
  });

export const isKey = (text: string): boolean => {
  const bytes = keyBytes(text);
  return bytes !== undefined && isUsableKey(bytes);
};

/** The policy that the text of the file is; a fault in it with the file's name. */
export function policyOf(text: string, file: string): Result<Policy> {
  const policy = readPolicy(text, isKey);
  return policy instanceof Refusal
    ? new Refusal(policy.code, `${file}: ${policy.message}`, { path: file })
    : policy;
}

function identityOf(text: string, file: string): Result<Identity> {
  const seed = keyBytes(text.trim());
  if (seed === undefined)
    return new Refusal(
      'identity_unavailable',
      `${file} does not hold a key: 43 characters of base64url; put it back from a copy`,
      { path: file },
    );
  return { ...signerOf(seed), seed };
}

/** Looked at before it is opened, and never through a link. */
function readKeyFile(file: string): Result<string> {
  const refuse = (code: 'identity_unavailable' | 'insecure_path', why: string): Refusal =>
    new Refusal(code, why, { path: file });
  try {
    const stat = lstatSync(file);
    if (!stat.isFile())
      return refuse(
        'insecure_path',
        `${file} is ${stat.isSymbolicLink() ? 'a symbolic link' : 'no regular file'}; the key must lie there itself`,
      );
    if (stat.uid !== process.getuid?.())
      return refuse('insecure_path', `${file} belongs to another account; chown it to this one`);
    if ((stat.mode & othersMask) !== 0)
      return refuse(
        'insecure_path',
        `others have access to ${file} (mode 0${(stat.mode & 0o777).toString(8)}); chmod 600 it`,
      );
    const directory = insecureDirectory(path.dirname(file));
    if (directory !== undefined) return directory;
    if (stat.size > keyFileBytesMax)
      return refuse(
        'identity_unavailable',
        `${file} has ${stat.size} bytes and holds no key; put it back from a copy`,
      );
    return readFileSync(file, 'latin1');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return refuse(
      'identity_unavailable',
      code === 'ENOENT' || code === 'ENOTDIR'
        ? `there is no key at ${file}; postbell identity create makes one`
        : `${file} cannot be read (${code})`,
    );
  }
}

export function identityFile(file: string): IdentityFile {
  return {
    create: (seed, { replace }) => {
      ensureDirectory(path.dirname(file));
      const text = `${keyText(seed)}\n`;
      if (replace) replacePrivateFile(file, text);
      else if (!createPrivateOnce(file, text))
        return new Refusal(
          'invalid_request',
          `there is a key already: ${file}; --force replaces it, and every peer must be paired with anew`,
          { path: file },
        );
      return { key: signerOf(seed).key, path: file };
    },
  };
}
