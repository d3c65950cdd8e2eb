// `npm run live-check -- --host claude [--channel] [--out FILE] [--keep] [--patience SECONDS]`: the owner of a logged-in Claude
// Code sees whether one session of it, started for this, is woken by a message and answers it. Run at a terminal, never in
// CI; with a data directory of its own, which is removed at the end.

import { randomBytes } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { release, tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { asText, judge, namesHooks, namesServer, reportOf, unfit } from './live-report.mjs';
import { attendanceIn, postbellIn, program, recordsIn, ringsIn, root, run } from './live-session.mjs';

const self = 'live-check';
const lookEveryMs = 500;

/** What ends a check before its verdict. */
class Refused extends Error {}
/** As that, but something was asked and is reported. */
class Stopped extends Error {}

function flagsOf(words) {
  if (words.some((word) => /^(-p|--print)(=|$)/.test(word)))
    throw new Refused('print mode is refused: nobody sits at such a session; start an interactive one');
  let values;
  try {
    const text = { type: 'string' };
    const flag = { type: 'boolean', default: false };
    const options = {
      host: text,
      channel: flag,
      out: text,
      keep: flag,
      patience: { ...text, default: '300' },
    };
    ({ values } = parseArgs({ args: words, options }));
  } catch (error) {
    throw new Refused(error.message.split('\n')[0]);
  }
  if (values.host !== 'claude') throw new Refused('name the host: --host claude');
  if (!/^[1-9]\d{0,3}$/.test(values.patience)) throw new Refused('--patience takes 1 to 9999 seconds');
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true)
    throw new Refused('this check is run by its owner at a terminal, and there is none');
  if (values.out !== undefined) {
    const wrong = unwritable(values.out);
    if (wrong !== undefined) throw new Refused(`--out cannot be written: ${wrong}`);
  }
  if (!existsSync(program)) throw new Refused('the program is not built: npm run build');
  return { ...values, patienceMs: Number(values.patience) * 1_000 };
}

/** Before anything is asked: a report that cannot be written at the end would be lost. @returns what keeps it */
function unwritable(file) {
  try {
    if (file === '' || statSync(file, { throwIfNoEntry: false })?.isFile() === false) return 'it is no file';
    const directory = path.dirname(path.resolve(file));
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    accessSync(directory, constants.W_OK);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

/** A data directory in which a socket fits, as the product itself says it; nothing is made where none does. */
async function makeHome() {
  const planned = path.join(realpathSync(tmpdir()), 'pbl-XXXXXX');
  const { rows } = JSON.parse((await postbellIn(planned).command(['doctor', '--json'])).stdout);
  const { level, text } = rows.find(({ id }) => id === 'router-socket');
  if (level === 'fail') throw new Refused(`${text}; set TMPDIR to a shorter directory`);
  return mkdtempSync(planned.slice(0, -6));
}

/** Questions at the terminal; each wait ends when the owner gives up. */
function openTerminal() {
  const given = new AbortController();
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const giveUp = () => given.abort();
  lines.on('SIGINT', giveUp).on('close', giveUp);
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, giveUp);
  const stopped = () => new Stopped('it was given up');
  return {
    say: (text) => process.stdout.write(`${text}\n`),
    ask: async (text) => {
      try {
        return (await lines.question(`${text} `, { signal: given.signal })).trim();
      } catch {
        throw stopped();
      }
    },
    /** Resolves once `look` answers with something, or with undefined after `ms`. */
    until: async (ms, look) => {
      for (const endMs = performance.now() + ms; performance.now() < endMs; ) {
        if (given.signal.aborted) throw stopped();
        const found = await look();
        if (found !== undefined) return found;
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
      }
      return undefined;
    },
    gaveUp: () => given.signal.aborted,
    close: () => {
      lines.off('close', giveUp);
      lines.close();
    },
  };
}

async function versionsOf() {
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { code, stdout } = await run('claude', ['--version']);
  if (code !== 0) throw new Refused('claude --version cannot be run: is Claude Code installed, and on PATH?');
  const platform = `${process.platform} ${process.arch} ${release()}`;
  return { postbell: version, node: process.versions.node, host: stdout.trim().split(/\s/)[0], platform };
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

/** For its owner alone, also where the file was there. */
function writeReport(file, report) {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

/** @returns the report, once the session has ended or the owner gave up */
async function check(terminal, { flags, home, versions }) {
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

/** Nothing is taken from below a session that runs: its server would make the directory again. @returns what was left */
function remove(home, sessionEnded) {
  if (attendanceIn(home) !== 'unseen') return `A session still runs with ${home}: end it, then remove that.`;
  if (!sessionEnded && !existsSync('/proc/self'))
    return `A session may still run with ${home}: end it, then remove that.`;
  try {
    // A server that ends just now may write into it once more.
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    return undefined;
  } catch (error) {
    return `${home} could not be removed whole (${error.code}).`;
  }
}

async function main(words) {
  const flags = flagsOf(words);
  const versions = await versionsOf();
  const home = await makeHome();
  const terminal = openTerminal();
  try {
    const report = await check(terminal, { flags, home, versions });
    terminal.say(`\n${asText(report)}`);
    if (flags.out !== undefined) writeReport(flags.out, report);
    if (flags.out !== undefined) terminal.say(`The report is ${flags.out}, for your eyes.`);
    return report.result === 'passed' ? 0 : 1;
  } finally {
    terminal.close();
    await postbellIn(home).command(['router', 'stop']);
    const left = flags.keep ? `Kept: ${home}` : remove(home, !terminal.gaveUp());
    if (left !== undefined) terminal.say(left);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`live-check: ${error instanceof Refused ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
