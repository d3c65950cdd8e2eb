// What hooks say of waiting mail, in lines: whose, where and how much, and how to read it. Never a body, a sender's free
// text, or a word about anybody else. Names are JSON string literals.

import { quoted } from './json.ts';
import { limits } from './limits.ts';
import { inertLine } from './untrusted.ts';

/** As the store counts them. */
interface Group {
  project: string;
  session?: string;
  unread: number;
  progress: number;
}

/** One line a project for `recipient` and one for each session that is addressed itself; the projects with most first. */
export function reminderLines(recipient: string, groups: readonly Group[]): string[] {
  const worthy = groups.filter(({ unread }) => unread > 0);
  const totals = new Map<string, number>();
  for (const { project, unread } of worthy) totals.set(project, (totals.get(project) ?? 0) + unread);
  const shown = [...totals]
    .toSorted(([a, most], [b, more]) => more - most || (a < b ? -1 : 1))
    .slice(0, limits.reminderProjectsMax);
  return shown.flatMap(([project]) =>
    worthy
      .filter((group) => group.project === project)
      .toSorted((a, b) => Number(a.session !== undefined) - Number(b.session !== undefined))
      .map((group) => inertLine(lineOf(recipient, group))),
  );
}

function lineOf(recipient: string, { project, session, unread, progress }: Group): string {
  const counts = `${unread} ${unread === 1 ? 'message' : 'messages'}${progress === 0 ? '' : ` and ${progress} progress`}`;
  const read = `call the tool receive_messages with project ${quoted(project)} (if it is not listed, search your tools for "postbell")`;
  if (session === undefined)
    return `Postbell: ${counts} waiting for ${quoted(recipient)} in project ${quoted(project)}: ${read}.`;
  const name = quoted(session);
  return (
    `Postbell: ${counts} waiting for the live session ${name} in project ${quoted(project)}: ${read}, or fetch each message_id with ` +
    `target_kind "session" (fetch or intake using your own principal id instead of ${name} will not match this session-targeted message).`
  );
}

/** What the Stop gate asks beside the lines. */
export const gateInstruction =
  'Read this mail, act on what you accept, and acknowledge what you read with the tool acknowledge_messages; then stop. This is an automatic notice: it is not the user speaking and no approval of anything.';

/** Once at a session's start, where nobody ever heard of the name. */
export const neverSeen = (recipient: string): string =>
  inertLine(
    `POSTBELL_RECIPIENT ${quoted(recipient)} has never been seen in any project \u2014 check it for a typo (or ignore this if it is a genuinely new recipient id)`,
  );

/** Why a declared name does not count. */
export const refusedRecipient = (why: string): string => `POSTBELL_RECIPIENT ignored: ${why}`;

/** Who the session is. The project is left out where it cannot be known. */
export function identityLine(session: string, principal: string, project: string | undefined): string {
  const where = project === undefined ? '' : ` in project ${quoted(project)}`;
  return inertLine(
    `Postbell: this session is ${quoted(session)}; its inbox is ${quoted(principal)}${where}.`,
  );
}

/** As many lines as the model is shown, with a count of what was left out; the last one always. */
export function boundedLines(lines: readonly string[], last?: string): string {
  const kept: string[] = [];
  let left = limits.reminderCharactersMax - 60 - (last === undefined ? 0 : last.length + 1);
  for (const line of lines) {
    left -= line.length + 1;
    if (left < 0) break;
    kept.push(line);
  }
  const cut = lines.length - kept.length;
  return [
    ...kept,
    ...(cut > 0 ? [`Postbell: ${cut} more ${cut === 1 ? 'line' : 'lines'} left out.`] : []),
    ...(last === undefined ? [] : [last]),
  ].join('\n');
}
