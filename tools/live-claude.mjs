// The live check of Claude Code: whether one session of it is woken by a message and answers it.

import { randomBytes } from 'node:crypto';
import { Refused, Stopped, self } from './live-desk.mjs';
import { judge, namesHooks, namesServer, reportOf, unfit } from './live-report.mjs';
import { attendanceIn, postbellIn, program, recordsIn, ringsIn, run } from './live-session.mjs';

/** The release that `claude` on PATH is. */
export async function claudeVersion() {
  const { code, stdout } = await run('claude', ['--version']);
  if (code !== 0) throw new Refused('claude --version cannot be run: is Claude Code installed, and on PATH?');
  return stdout.trim().split(/\s/)[0];
}

/** @returns the report, once the session has ended or the owner gave up */
export async function checkClaude(terminal, { flags, home, versions }) {
  const day = new Date().toISOString().slice(0, 10);
  const { channel, patienceMs } = flags;
  const rows = [];
  const found = await look(terminal, { home, channel, patienceMs, rows, day, versions }).catch((error) => {
    if (!(error instanceof Stopped)) throw error;
    return { result: 'stopped', rows: [{ id: 'stopped', result: 'fail', text: error.message }] };
  });
  await terminal.ask('End the session there (/exit), then press Enter:').catch(() => {});
  return reportOf({ channel, day, versions, ...found, rows: [...rows, ...found.rows] });
}

/** From the owner's own look to the verdict. */
async function look(terminal, { home, channel, patienceMs, rows, day, versions }) {
  const office = postbellIn(home);
  await identify(terminal, { home, channel, rows });
  // The project of this directory, by a note of the check to itself.
  const { project } = await office.answer(['send', self, '--json'], 'the check begins');
  const scene = { home, office, project, channel, patienceMs, rows };
  const { session, attendance } = await findSession(terminal, scene);
  const facts = await exchange(terminal, { ...scene, session });
  const verdict = judge({ ...facts, channel, day, versions });
  return { result: verdict.result, rows: verdict.rows, attendance };
}

/** The owner's own look comes first: without both, nothing is sent. */
async function identify({ ask, say }, { home, channel, rows }) {
  say(`\nStart an interactive session of Claude Code in another terminal:\n
  cd '${process.cwd()}' && POSTBELL_HOME='${home}' ${channel ? `node '${program}' claude` : 'claude'}\n`);
  const found = (id, text) =>
    rows.push({ id, result: 'info', text: `the owner saw ${JSON.stringify(text)}` });
  const server = await ask(
    'Type /mcp there. Which connected server of Postbell does it show? Its name (or nothing):',
  );
  if (!namesServer(server)) throw new Stopped('the MCP server of Postbell could not be identified');
  found('mcp', server);
  const hooks = await ask(
    'Type /hooks there. Which events have hooks of Postbell? Their names (or nothing):',
  );
  if (!namesHooks(hooks))
    throw new Stopped('the hooks of Postbell could not be identified: SessionStart and Stop are needed');
  found('hooks', hooks);
}

/** The one session of Claude Code that has this data directory, with a hook of it. */
async function findSession({ until, say }, { home, office, project, channel, patienceMs, rows }) {
  say('Looking for the session ...');
  const look = async () => {
    const { cards } = await office
      .answer(['message', 'discover', '--project', project, '--detail'])
      .catch(() => ({ cards: [] }));
    const hooked = recordsIn(home).some(({ hook, host }) => hook === 'session-start' && host === 'claude');
    const ours = cards.filter(({ host_kind }) => host_kind === 'claude');
    return ours.length > 0 && hooked ? ours : undefined;
  };
  const cards = await until(patienceMs, look);
  if (cards === undefined)
    throw new Stopped(
      `no session of Claude Code whose server and hooks have ${home} came in ${process.cwd()}`,
    );
  if (cards.length > 1) throw new Stopped(`${cards.length} sessions came, and one is needed`);
  const [session] = cards;
  const attendance = attendanceIn(home);
  const wrong = unfit({ bell: session.bell, unattended: attendance === 'unattended' }, channel);
  if (wrong !== undefined) throw new Stopped(wrong);
  rows.push({ id: 'session', result: 'info', text: `${session.session_id}, rung by its ${session.bell}` });
  return { session, attendance };
}

const bodyOf = (
  code,
) => `This is a live check of Postbell, started by the owner of this account. Read-back code: ${code}
Please acknowledge this message, and answer it: tool message, action send, recipient ${self}, reply_to the id of this message,
and a payload that holds the code. Nothing else is asked of you.`;

/** Sends the code, and waits for the answer; what was left by then. */
async function exchange({ until, ask, say }, { home, office, project, session, patienceMs }) {
  await ask('Let the session be idle, and do not type into it. Press Enter to send:');
  // Never begins with a hyphen, which a command line takes for an option.
  const code = randomBytes(9).toString('hex');
  const to = ['--project', project, '--recipient', session.principal_id];
  const key = ['--sender', self, '--idempotency-key', code, '--payload-stdin'];
  const sent = await office.answer(['message', 'send', ...to, ...key], bodyOf(code));
  say('Sent. Allow the tools of Postbell there if Claude Code asks; type nothing else.');
  const read = async () => ({
    inbox: (await office.answer(['inbox', 'receive', '--project', project, '--recipient', self])).messages,
    receipts: (await office.answer(['message', 'receipts', ...to, '--message-id', sent.message_id])).receipts,
  });
  const facts = async () => ({
    sent,
    code,
    session,
    ...(await read()),
    records: recordsIn(home),
    ...ringsIn(home),
  });
  const isDone = ({ inbox, receipts }) =>
    inbox.some(({ reply_to }) => reply_to === sent.message_id) &&
    receipts.some(({ receipt_kind }) => receipt_kind === 'intake');
  await until(patienceMs, async () => (isDone(await read()) ? true : undefined));
  return facts();
}
