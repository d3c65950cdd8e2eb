// Rows of the store: whether it opens and is sound, who may read it, how full it is, and what names it holds.

import type { Entry, MailFacts } from '../../ports/inspection.ts';
import { type Finding, worst } from '../../protocol/doctor.ts';
import { type NameFault, nameFaults } from '../../protocol/scope.ts';
import { type DoctorFacts, shellWord, sizeOf, unseen } from './facts.ts';

const fullRatio = 0.8;
const shownPaths = 3;

export function store({ store: looked, sqlite, storePath, storeBytes }: DoctorFacts): Finding {
  if (sqlite.state !== 'found')
    return unseen('the SQLite driver cannot be loaded', 'mend what the row node says');
  if (looked.state === 'missing')
    return { level: 'info', text: `no store yet at ${storePath}; the first command that needs one makes it` };
  if (looked.state === 'closed')
    return {
      level: 'fail',
      text: looked.why,
      hint: `look at ${shellWord(storePath)}: Postbell neither replaces nor renames a store by itself`,
    };
  const { damage, schema, schemaKnown } = looked.value;
  if (damage !== undefined)
    return {
      level: 'fail',
      text: `the store is damaged: ${damage}`,
      hint: `end all sessions, copy ${shellWord(storePath)} away, and recover it: sqlite3 FILE .recover`,
    };
  if (schema < schemaKnown)
    return {
      level: 'warn',
      text: `the store has schema ${schema}, this release ${schemaKnown}; the next command that writes brings it up to date`,
      hint: 'postbell read',
    };
  return { level: 'pass', text: `schema ${schema}, sound, ${sizeOf(storeBytes)} at ${storePath}` };
}

/** What the store says of the mail; else the finding of a row that cannot say anything without it. */
export function mailOf({ store: looked }: Pick<DoctorFacts, 'store'>): MailFacts | Finding {
  if (looked.state === 'missing') return { level: 'info', text: 'no store yet' };
  if (looked.state === 'found' && looked.value.mail !== undefined) return looked.value.mail;
  return unseen('the store cannot be used as it is', 'mend what the row store says');
}

export const isFinding = (one: MailFacts | Finding): one is Finding => 'level' in one;

export function storePermissions({ entries, ownDirectory }: DoctorFacts): Finding {
  const findings: Finding[] = [];
  const open: Entry[] = [];
  for (const [index, looked] of entries.entries()) {
    if (looked.state === 'closed') findings.push(unseen(looked.why, 'look as the owner of the directory'));
    if (looked.state !== 'found') continue;
    const { value: entry } = looked;
    const isPlaced = index === 0 && !ownDirectory;
    if (isPlaced && isListedOnly(entry))
      findings.push({
        level: 'warn',
        text: `${entry.path} can be listed by others`,
        hint: `chmod go= ${shellWord(entry.path)}`,
      });
    else if (!isPrivate(entry)) open.push(entry);
  }
  if (open.length > 0) {
    const shown = open.slice(0, shownPaths);
    const more = open.length - shown.length;
    findings.push({
      level: 'fail',
      text: `not private to this account: ${shown.map(said).join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
      // Never a whole directory: where somebody placed a database, the rest is not ours.
      hint: `chmod go= ${shown.map(({ path }) => shellWord(path)).join(' ')}, if they are yours`,
    });
  }
  const count = entries.filter(({ state }) => state === 'found').length;
  return worst(
    findings,
    count === 0
      ? { level: 'info', text: 'no data directory yet' }
      : {
          level: 'pass',
          text: `private to this account: the data directory and what lies in it (${count - 1})`,
        },
  );
}

const isPrivate = ({ own, mode, kind }: Entry): boolean => own && (mode & 0o077) === 0 && kind !== 'link';
/** A directory that somebody else made: it has to be safe from others, not closed to them. */
const isListedOnly = ({ own, mode, kind }: Entry): boolean =>
  kind === 'directory' && own && (mode & 0o022) === 0 && (mode & 0o077) !== 0;

function said({ path, kind, own, mode }: Entry): string {
  if (kind === 'link') return `${path} (a symbolic link)`;
  return `${path} (${own ? `mode 0${mode.toString(8)}` : 'of another account'})`;
}

export function messageStorage(facts: DoctorFacts): Finding {
  const { quota, walBytes } = facts;
  const variable = 'POSTBELL_STORAGE_QUOTA_BYTES';
  if (quota === 'malformed')
    return {
      level: 'warn',
      text: `${variable} is no whole number, so that sends are refused`,
      hint: `set ${variable} to a number of bytes, or unset it`,
    };
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const used = sizeOf(mail.payloadBytes);
  if (quota !== undefined && mail.payloadBytes > fullRatio * quota)
    return {
      level: 'warn',
      text: `payloads take ${used} of a quota of ${sizeOf(quota)}`,
      hint: `raise ${variable}`,
    };
  const limit = quota === undefined ? 'no quota' : `quota ${sizeOf(quota)}`;
  return { level: 'pass', text: `payloads take ${used}, ${limit}, WAL ${sizeOf(walBytes)}` };
}

/** Reported and left as they are: whoever wrote such a name must still find it. */
export function scope(facts: DoctorFacts): Finding {
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const counts = new Map<NameFault, number>();
  const broken = mail.identifiers.filter((name) => {
    const faults = nameFaults(name);
    for (const fault of faults) counts.set(fault, (counts.get(fault) ?? 0) + 1);
    return faults.length > 0;
  });
  if (broken.length === 0)
    return {
      level: 'pass',
      text: `all ${mail.identifiers.length} names of projects, inboxes and sessions keep today\u2019s rules`,
    };
  const by = [...counts].map(([fault, count]) => `${fault} ${count}`).join(', ');
  return {
    level: 'info',
    text: `${broken.length} of ${mail.identifiers.length} names of projects, inboxes and sessions break today\u2019s rules (${by}); nothing is changed`,
    hint: 'send to the name in its present form; mail under the old one stays under the old one',
  };
}
