// Rows of the sessions: who is there, and who cannot be reached as a person would think.

import type { LiveSession } from '../../ports/inspection.ts';
import { type Finding, worst } from '../../protocol/doctor.ts';
import { quoted } from '../../protocol/json.ts';
import { type DoctorFacts, listed } from './facts.ts';
import { mismatches } from './paired.ts';
import { isFinding, mailOf } from './stored.ts';

/** A session's first hook may come after its server. */
const hookWaitMs = 60_000;

export function sessions(facts: DoctorFacts): Finding {
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const mute = mail.live.filter(({ bell }) => bell === 'none').length;
  return {
    level: 'info',
    text: `${mail.live.length} live, ${mute} of them without a bell; ${mail.expired} expired in 24 h`,
  };
}

export function listener(facts: DoctorFacts): Finding {
  const mail = mailOf(facts);
  const findings = mismatches(facts, isFinding(mail) ? undefined : mail.roots);
  if (isFinding(mail)) return worst([...findings, mail], mail);
  const { live } = mail;
  const warn = (of: readonly LiveSession[], text: string, hint: string): void => {
    const ids = listed(of.map(({ session_id }) => session_id));
    if (of.length > 0) findings.push({ level: 'warn', text: `${text}: ${ids}`, hint });
  };
  warn(
    live.filter(isGenerated),
    'an id that no hook can find, so that nothing rings',
    'use a release of the host that names its session to MCP servers, or set POSTBELL_SESSION for the whole session',
  );
  warn(
    live.filter((one) => one.bell === 'none' && !isGenerated(one)),
    'no bell, so that nothing rings and mail waits for a look',
    'start the next turn there; see the rows hooks and hook-activity',
  );
  warn(
    live.filter((one) => isUnmet(one, facts.nowMs)),
    `no hook has ever come to ${facts.storePath} for this session, whose hooks have another data directory, another id, or do not run`,
    'start host, server and hooks with the same POSTBELL_HOME, POSTBELL_DB and POSTBELL_SESSION; run doctor with those of the hooks, too',
  );
  warn(
    live.filter(({ unanswered }) => unanswered),
    'the last three rings brought no intake',
    'look at the session: it may be in a long turn, or not be told; see the row hooks',
  );
  return worst(findings, {
    level: 'pass',
    text: `each live session can be rung, as far as the store shows (${live.length})`,
  });
}

/** Nothing is known of a thread that no release was tried for. */
export function codexQueueRelease(facts: DoctorFacts): Finding {
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const { queueReleases } = mail;
  const alone = queueReleases.filter(
    ({ value, reason }) => value === 'unsupported' && reason === 'no_daemon',
  );
  if (alone.length === 0)
    return {
      level: 'pass',
      text: `no queue of a Codex thread was found without an app-server to start it (7 days, requests on record: ${queueReleases.length})`,
    };
  return {
    level: 'warn',
    text: `no app-server answered that could start queued notices: ${alone.map(({ session_id }) => quoted(session_id)).join(', ')}; after an interrupted turn, what is queued there waits for a prompt`,
    hint: 'type a prompt in that thread; threads started without --no-daemon have such a server (postbell agent setup codex-session names them)',
  };
}

/** Made up by the server, where its host names none. */
const isGenerated = ({ session_id, host_kind, bell }: LiveSession): boolean =>
  host_kind === 'other' && bell === 'none' && /^[0-9a-f]{16}$/.test(session_id);

const isUnmet = ({ bell, hookSeen, connected_at }: LiveSession, nowMs: number): boolean =>
  bell === 'listener' && !hookSeen && Date.parse(connected_at) < nowMs - hookWaitMs;
