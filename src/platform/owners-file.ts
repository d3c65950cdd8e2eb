// A file that its owner edits by hand and that Postbell rewrites at his word: read through links to the one real file, and never
// where another account could have written it. That others may read it does no harm: it holds no secret.

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { Refusal, type Result } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { createPrivateOnce, ensureDirectory } from './files.ts';

const othersWriteMask = 0o022;
const linksMax = 40;

/** Its text; undefined where there is no file. Refusal `insecure_path` or `store_unreadable`, each with what is to be done. */
export function readOwnersFile(file: string): Result<string | undefined> {
  const refuse = (code: 'store_unreadable' | 'insecure_path', why: string): Refusal =>
    new Refusal(code, why, { path: file });
  let descriptor: number | undefined;
  try {
    // Not blocked by a pipe in its place.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile())
      return refuse('insecure_path', `${file} is no regular file; move it away, and put the file back`);
    if (stat.uid !== process.getuid?.())
      return refuse('insecure_path', `${file} belongs to another account; chown it to this one`);
    if ((stat.mode & othersWriteMask) !== 0)
      return refuse('insecure_path', `others can write ${file}; chmod go-w it`);
    if (stat.size > limits.privateFileBytesMax)
      return refuse('store_unreadable', `${file} has ${stat.size} bytes and is none of ours`);
    return (
      insecureDirectory(path.dirname(realpathSync(file))) ??
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(descriptor))
    );
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    return refuse(
      'store_unreadable',
      code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
        ? `${file} is not UTF-8; save it anew`
        : `${file} cannot be read (${code})`,
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** What is wrong with a directory in which another account could put a file in the place of ours. */
export function insecureDirectory(directory: string): Refusal | undefined {
  const stat = statSync(directory);
  if (stat.uid !== process.getuid?.())
    return new Refusal('insecure_path', `${directory} belongs to another account`, { path: directory });
  return (stat.mode & othersWriteMask) === 0
    ? undefined
    : new Refusal('insecure_path', `others can write in ${directory}; chmod go-w it`, { path: directory });
}

/** Where the links end, whether a file is there or not. The directory must be there. */
export function realTarget(file: string): string {
  let at = file;
  for (let links = 0; links < linksMax; links += 1) {
    at = path.join(realpathSync(path.dirname(at)), path.basename(at));
    if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() !== true) break;
    at = path.resolve(path.dirname(at), readlinkSync(at));
  }
  return at;
}

/** Makes it where there is none, for this account alone. */
export function createOwnersFile(file: string, text: string): void {
  ensureDirectory(path.dirname(file));
  createPrivateOnce(realTarget(file), text);
}
