// What doctor answers: one row for each thing it looked at, with one sentence and one line of remedy. A row that could
// not look says so and is never `pass`.

export const levels = ['pass', 'info', 'warn', 'fail'] as const;
export type Level = (typeof levels)[number];

/** Every row, in the order in which they are shown. */
export const rowIds = [
  'install',
  'node',
  'store',
  'store-permissions',
  'mcp',
  'hooks',
  'hook-activity',
  'shell-cli',
  'router-socket',
  'router-version',
  'sessions',
  'message-storage',
  'scope',
  'claude-channel',
  'codex-queue-release',
  'hosts-config',
  'identity',
  'peers',
  'relays',
  'link',
  'listener',
  'probe-capability',
  'probe-router',
] as const;
export type RowId = (typeof rowIds)[number];

export interface Finding {
  level: Level;
  text: string;
  /** What the owner may do about it. */
  hint?: string;
}

export interface DoctorRow extends Finding {
  id: RowId;
}

export type Verdict = 'PASS' | 'PASS_WITH_CONCERNS' | 'FAIL';

/** Informational rows never count. */
export function verdictOf(rows: readonly Finding[]): Verdict {
  if (rows.some(({ level }) => level === 'fail')) return 'FAIL';
  return rows.some(({ level }) => level === 'warn') ? 'PASS_WITH_CONCERNS' : 'PASS';
}

const rank = ({ level }: Finding): number => levels.indexOf(level);

/** All findings of the worst level as one; `sound` where there is none. */
export function worst(findings: readonly Finding[], sound: Finding): Finding {
  const level = levels[Math.max(-1, ...findings.map(rank))];
  if (level === undefined) return sound;
  const said = findings.filter((finding) => finding.level === level);
  const hints = [...new Set(said.flatMap(({ hint }) => (hint === undefined ? [] : [hint])))];
  return {
    level,
    text: said.map(({ text }) => text).join('; '),
    ...(hints.length > 0 && { hint: hints.join('; then ') }),
  };
}
