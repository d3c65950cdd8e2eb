// What an owner-run live check may say of what it saw. Nothing is looked at here: a pass is decided from the facts alone, and
// needs an answer that the model could only give after it saw the message, and the session's own intake.

/** What no run can show. */
export const neverSaid = [
  'Other accounts and other releases of the host may behave otherwise.',
  'That a model does what a message asks is not claimed: this one answered, or it did not.',
  'Nothing is claimed of a stopped session: it is not woken.',
  'That nothing was lost outside this run is not claimed.',
];

/** By mode, and for a run without the facts of another process's environment. */
export function limitationsOf({ channel, day, versions, attendance }) {
  return [
    ...neverSaid,
    channel
      ? `What is said of channels holds for the account that was logged in, Claude Code ${versions.host}, and ${day}.`
      : 'Nothing is said of channels.',
    'The release of the host is the one that claude on PATH names; the account was not looked at.',
    'That /mcp and /hooks showed Postbell is the word of whoever ran the check.',
    ...(attendance === 'unseen'
      ? ['Whether somebody sat at the session could not be looked at on this system.']
      : []),
  ];
}

/** @returns whether the owner’s words name Postbell’s server, and the hooks that start its listener */
export const namesServer = (words) => /postbell/i.test(words);
export const namesHooks = (words) =>
  ['SessionStart', 'Stop'].every((event) => wordsOf(words).has(event.toLowerCase()));

const wordsOf = (text) => new Set(text.toLowerCase().split(/[^a-z]+/));

/** Why a session cannot be checked; undefined where it can. */
export function unfit({ bell, unattended }, channel) {
  if (unattended) return 'print mode is refused: nobody sits at that session';
  const wanted = channel ? 'channel' : 'listener';
  if (bell === wanted) return undefined;
  return bell === 'none'
    ? 'the session has no bell: it runs unattended, as in print mode, or its listener is switched off'
    : `the session is rung by its ${bell}, and this check is of the ${wanted}`;
}

/**
 * The rows of a message that was sent. `run` holds what the store, the session and its hooks left between the send and the
 * end of the wait.
 */
export function judge(run) {
  const takenIn = takenInBy(run);
  const answer = readBackOf(run);
  const road = run.channel ? channelRow(run, takenIn) : wakeRow(run, takenIn);
  const rows = [
    {
      id: 'stored',
      result: 'info',
      text: `${run.sent.message_id} was stored at ${run.sent.created_at}; that proves no delivery`,
    },
    { id: 'handed-over', result: 'info', text: `${handedOver(run)}; that proves no reading` },
    takenIn === undefined
      ? { id: 'intake', result: 'fail', text: 'the session took the message in by no call of its own' }
      : { id: 'intake', result: 'pass', text: `the session took it in at ${takenIn.recorded_at}` },
    answer === undefined
      ? { id: 'read-back', result: 'fail', text: 'no answer of the session with the code came' }
      : { id: 'read-back', result: 'pass', text: `${answer.message_id} answers with the code` },
    road,
  ];
  const passed = rows.every(({ result }) => result !== 'fail');
  return { result: passed ? 'passed' : 'not passed', rows };
}

/** By the session itself, and not by whoever else reads its mail. */
export const takenInBy = ({ receipts, session }) =>
  receipts.find(
    (fact) =>
      fact.receipt_kind === 'intake' &&
      fact.source === 'receipt' &&
      fact.actor === session.principal_id &&
      fact.caller_session === session.session_id,
  );

/** By its provenance: a sender is a label that anybody may write. */
export const readBackOf = ({ inbox, sent, session, code }) =>
  inbox.find(
    ({ reply_to, provenance, payload }) =>
      reply_to === sent.message_id &&
      provenance?.transport === 'mcp' &&
      provenance.session === session.session_id &&
      JSON.stringify(payload ?? '').includes(code),
  );

function handedOver({ receipts }) {
  const accepted = receipts.filter(({ receipt_kind }) => receipt_kind === 'host_accept');
  if (accepted.length > 0)
    return accepted.map(({ adapter_kind, value }) => `${adapter_kind} accepted it (${value})`).join(', ');
  return receipts.some(({ receipt_kind }) => receipt_kind === 'attempt')
    ? 'a hand-over was tried, and nothing accepted it'
    : 'no hand-over was tried';
}

/** What hooks told the model: by a prompt, a start, the Stop gate. */
const reminders = ({ records, sent }) =>
  records.filter(
    ({ outcome, time }) => outcome === 'notified' && Date.parse(time) >= Date.parse(sent.created_at),
  );

/** A reminder after the delivery is no wake: the listener must have been first. Its own wake brings one afterwards. */
function wakeRow(run, takenIn) {
  const sentMs = Date.parse(run.sent.created_at);
  const printedMs = Math.min(...run.printsMs.filter((ms) => ms >= sentMs));
  const remindedMs = Math.min(...reminders(run).map(({ time }) => Date.parse(time)));
  const row = (result, text) => ({ id: 'wake', result, text });
  if (printedMs === Number.POSITIVE_INFINITY)
    return row('fail', 'no listener printed a notice during the run');
  if (remindedMs < printedMs)
    return row('fail', 'a hook reminded the session before its listener printed: that is no wake');
  if (takenIn !== undefined && Date.parse(takenIn.recorded_at) < printedMs)
    return row('fail', 'the session took the message in before its listener printed: it looked by itself');
  return row(
    'pass',
    `its listener printed a notice at ${new Date(printedMs).toISOString()}, before any reminder`,
  );
}

/** Only what nothing else can have brought. */
function channelRow(run, takenIn) {
  const row = (result, text) => ({ id: 'channel', result, text });
  const others = [
    [reminders(run).length, 'told by hooks'],
    [run.printsMs.filter((ms) => ms >= Date.parse(run.sent.created_at)).length, 'printed by a listener'],
    [run.told, 'told by the Stop gate or between two tools'],
  ].filter(([count]) => count > 0);
  if (others.length > 0) {
    const by = others.map(([count, how]) => `${how} (${count})`).join(', ');
    return row('fail', `mail was ${by} during the run: that is no delivery by the channel`);
  }
  const accepted = run.receipts.find(
    ({ receipt_kind, adapter_kind }) => receipt_kind === 'host_accept' && adapter_kind === 'claude-channel',
  );
  if (accepted === undefined) return row('fail', 'nothing was written to the channel');
  if (takenIn === undefined || readBackOf(run) === undefined)
    return row('fail', 'the channel was written to; nothing shows that the model saw it');
  if (takenIn.recorded_at < accepted.recorded_at)
    return row('fail', 'the session took the message in before the channel was written to');
  return row(
    'pass',
    `on this account, with Claude Code ${run.versions.host}, on ${run.day}: the model answered a message that nothing but the channel brought`,
  );
}

/** The whole report; `rows` of a check that stopped are those of what it had asked. */
export function reportOf({ result, rows, channel, day, versions, attendance }) {
  return {
    check: channel ? 'claude channel' : 'claude',
    result,
    day,
    versions,
    rows,
    limitations: limitationsOf({ channel, day, versions, attendance }),
  };
}

export function asText({ result, rows, limitations }) {
  const lines = rows.map(({ id, result: level, text }) => `${level.padEnd(4)}  ${id.padEnd(15)}  ${text}`);
  return [
    ...lines,
    result.toUpperCase(),
    '',
    'What this does not show:',
    ...limitations.map((one) => `- ${one}`),
    '',
  ].join('\n');
}
