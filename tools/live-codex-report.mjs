// What an owner-run live check of Codex may say of what it saw. Nothing is looked at here. A stage in which the thread was rung
// passes only by an answer that the model could give only after it saw the message, and by the thread's own intake: that a
// queue took a notice proves neither.

import { neverSaid, readBackOf, takenInBy } from './live-report.mjs';

const row = (id, result, text) => ({ id, result, text });

/** In the order in which they are reached. */
const stages = {
  start: ['session-start', startRow],
  delivery: ['native-delivery', (one) => rungRow('native-delivery', one)],
  resumed: undefined,
  redelivery: ['resume', resumeRow],
  ended: ['stopped-session', endedRow],
};

/**
 * One row a stage; one that was not reached is no pass.
 * @param seen what each stage left
 * @param stopped why the check ended before its end
 */
export function judgeCodex(seen, stopped) {
  const rows = Object.entries(stages).flatMap(([name, stage]) => {
    if (stage === undefined) return [];
    const [id, judge] = stage;
    return [seen[name] === undefined ? row(id, 'fail', 'was not reached') : judge(seen[name], seen)];
  });
  if (stopped !== undefined) rows.push(row('stopped', 'fail', stopped));
  const passed = rows.every(({ result }) => result === 'pass');
  return { result: passed ? 'passed' : stopped === undefined ? 'not passed' : 'stopped', rows };
}

function startRow({ session, hooked }) {
  const fail = (text) => row('session-start', 'fail', text);
  if (!hooked) return fail('no hook of a session\u2019s start left a record');
  if (session.bell !== 'codex-queue')
    return fail(`${session.session_id} is registered with the bell ${session.bell}, and not with its queue`);
  return row('session-start', 'pass', `${session.session_id} was registered by its hooks, rung by its queue`);
}

/** A message to the exact thread, from its acceptance to the answer. */
function rungRow(id, run) {
  const fail = (text) => row(id, 'fail', text);
  const accepted = run.receipts.find(
    ({ receipt_kind, adapter_kind }) => receipt_kind === 'host_accept' && adapter_kind === 'codex-queue',
  );
  if (accepted === undefined) return fail('the queue of the thread took no notice');
  const queued = `the queue took a notice at ${accepted.recorded_at}, which proves no reading`;
  const told = run.records.find(
    ({ outcome, time }) => outcome === 'notified' && time >= run.sentAt && time < accepted.recorded_at,
  );
  if (told !== undefined) return fail('a hook told the thread of its mail before anything was queued');
  // Mail to an exact session is taken in under that session's own id.
  const { session_id } = run.session;
  const taken = takenInBy({ ...run, session: { session_id, principal_id: session_id } });
  if (taken === undefined) return fail(`${queued}; the thread took the message in by no call of its own`);
  if (taken.recorded_at < accepted.recorded_at)
    return fail('the thread took the message in before anything was queued: it looked by itself');
  const answer = readBackOf(run);
  if (answer === undefined) return fail(`${queued}; no answer of the thread with the code came`);
  return row(
    id,
    'pass',
    `${queued}; the thread took the message in at ${taken.recorded_at}, and ${answer.message_id} answers with the code`,
  );
}

function resumeRow(run, { start, resumed }) {
  const fail = (text) => row('resume', 'fail', text);
  if (resumed.session.session_id !== start.session.session_id) return fail('another thread came back');
  if (!(resumed.session.generation > start.session.generation))
    return fail('the thread was not registered anew');
  return rungRow('resume', run);
}

/** A refusal counts only beside a router that answers and a message that is kept. */
function endedRow({ sent, discovery, fetched, code }) {
  const fail = (text) => row('stopped-session', 'fail', text);
  if (sent.refusal !== 'recipient_unavailable')
    return fail(`a send to the ended thread was answered ${sent.refusal ?? 'as if it were reached'}`);
  if (!discovery.healthy) return fail('recipient_unavailable, and no router answered: that says nothing');
  if (discovery.live) return fail('recipient_unavailable, and the thread is live');
  if (fetched?.message_id !== sent.message_id || !JSON.stringify(fetched.payload ?? '').includes(code))
    return fail('recipient_unavailable, and the message could not be fetched');
  return row(
    'stopped-session',
    'pass',
    `recipient_unavailable, with a router that knows no such session; ${sent.message_id} is kept and was fetched`,
  );
}

const limitationsOf = ({ codexHome }) => [
  ...neverSaid,
  'Nothing is said of channels, and nothing of Codex with a shared server (it ran with --no-daemon).',
  'That nobody typed into the session after a send, and that the hooks were reviewed, is the word of whoever ran the check.',
  `The release of the host is the one that codex on PATH names; of the account nothing was looked at but that ${codexHome} is logged in.`,
  'What becomes of a message to an ended thread when the thread is resumed was not looked at.',
];

export const reportOfCodex = ({ result, rows, codexHome, day, versions }) => ({
  check: 'codex',
  result,
  day,
  versions,
  rows,
  limitations: limitationsOf({ codexHome }),
});
