// The live check of Codex: one real thread in a disposable home of Codex that holds a real login. The thread starts, is rung
// through its queue, is resumed and rung again, and is sent to when it has ended.

import { randomBytes } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { judgeCodex, reportOfCodex } from './live-codex-report.mjs';
import { Refused, Stopped, self } from './live-desk.mjs';
import { postbellIn, program, recordsIn, root, run } from './live-session.mjs';

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const codexIn = (home, words) => run('codex', words, { env: { ...process.env, CODEX_HOME: home } });

/** The home that was named, which is there, is not the one of every day, does not go by itself, and is logged in. */
export async function disposableHome(given) {
  if (given === undefined || given === '')
    throw new Refused('name a disposable home of Codex that you logged in to: --codex-home DIR');
  const home = realOf(given);
  if (home === undefined || !statSync(home).isDirectory())
    throw new Refused(`--codex-home ${given}: there is no such directory`);
  const temporary = [tmpdir(), '/tmp', '/var/tmp'].flatMap((one) => realOf(one) ?? []);
  if (temporary.some((one) => home === one || home.startsWith(`${one}${path.sep}`)))
    throw new Refused(
      `--codex-home ${home} lies in a temporary directory of the system, and will hold a login: choose another`,
    );
  if (home === realOf(path.join(homedir(), '.codex')))
    throw new Refused(`--codex-home ${home} is the home of your everyday Codex: make another for this check`);
  const { code } = await codexIn(home, ['login', 'status']);
  if (typeof code !== 'number' || code < 0)
    throw new Refused('codex cannot be run: is it installed, and on PATH?');
  if (code !== 0)
    throw new Refused(`--codex-home ${home} is not logged in: CODEX_HOME=${quoted(home)} codex login`);
  return home;
}

function realOf(file) {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

/** The release that `codex` on PATH is. */
export async function codexVersion(home) {
  const { code, stdout } = await codexIn(home, ['--version']);
  if (code !== 0) throw new Refused('codex --version cannot be run: is it installed, and on PATH?');
  return stdout.trim().split(/\s/).at(-1);
}

export const reminderOf = (home) =>
  `${home} holds a real login. This check never deletes it: remove exactly that directory yourself, rm -r ${quoted(home)}`;

/** @returns the report, once the thread has ended or the owner gave up */
export async function checkCodex(terminal, { flags, home, versions }) {
  const day = new Date().toISOString().slice(0, 10);
  const seen = {};
  let stopped;
  try {
    await look(terminal, { ...flags, home, seen });
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    stopped = error.message;
    await terminal.ask('End the session there (/quit), if one runs, then press Enter:').catch(() => {});
  }
  return reportOfCodex({ ...judgeCodex(seen, stopped), codexHome: flags.codexHome, day, versions });
}

/** `seen` holds what each stage left, for the verdict. */
async function look(terminal, { codexHome, home, patienceMs, seen }) {
  await install(terminal, codexHome);
  const office = postbellIn(home);
  // The project of this directory, by a note of the check to itself.
  const { project } = await office.answer(['send', self, '--json'], 'the check begins');
  const scene = { terminal, codexHome, home, office, project, patienceMs };
  seen.start = await started(scene);
  seen.delivery = await exchange(scene, seen.start.session);
  seen.resumed = await resumed(scene, seen.start.session);
  seen.redelivery = await exchange(scene, seen.resumed.session);
  seen.ended = await ended(scene, seen.start.session);
}

/** This very program’s plugin, by Codex’s own commands. */
async function install({ say }, codexHome) {
  say(`\nThe plugin of this Postbell is installed into ${codexHome} ...`);
  for (const words of [
    ['plugin', 'marketplace', 'add', root],
    ['plugin', 'add', 'postbell@postbell'],
  ]) {
    const { code, stdout, stderr } = await codexIn(codexHome, words);
    if (code === 0) continue;
    const lines = `${stdout}\n${stderr}`.trim().split('\n');
    const said = lines.find((line) => line.startsWith('Error: ')) ?? lines.at(-1);
    throw new Stopped(`codex ${words.join(' ')} failed: ${said}`);
  }
}

/** Without the shared server, which would stay, and have the variables of whoever started it. */
const commandFor = ({ codexHome, home }, words) =>
  [
    `cd ${quoted(process.cwd())} &&`,
    `CODEX_HOME=${quoted(codexHome)} POSTBELL_HOME=${quoted(home)} POSTBELL_BIN=${quoted(program)}`,
    `codex ${words}`,
  ].join(' ');

async function started(scene) {
  const { say, ask } = scene.terminal;
  say(`\nStart Codex in another terminal:\n\n  ${commandFor(scene, '--no-daemon')}\n`);
  say(
    'It says that hooks need review: read them, and trust those of Postbell. Then type a first prompt, such as: hello',
  );
  await ask('When it has answered, press Enter here:');
  const found = await findThread(scene, ({ host_kind }) => host_kind === 'codex');
  if (found === undefined)
    throw new Stopped(
      `no thread of Codex whose server and hooks have ${scene.home} came in ${process.cwd()}: were the hooks trusted?`,
    );
  return found;
}

async function resumed(scene, { session_id, generation }) {
  const { say, ask } = scene.terminal;
  say(
    `\nEnd the session there (/quit), and resume it:\n\n  ${commandFor(scene, `resume --no-daemon ${session_id}`)}\n`,
  );
  say('Then type a prompt, such as: go on');
  await ask('When it has answered, press Enter here:');
  const found = await findThread(
    scene,
    (card) => card.session_id === session_id && card.generation > generation,
  );
  if (found === undefined) throw new Stopped(`the thread ${session_id} was not registered again`);
  return found;
}

/** The one live thread of that kind, and whether a hook of its start left a record. */
async function findThread({ terminal: { until, say }, home, office, project, patienceMs }, isIt) {
  say('Looking for the thread ...');
  const cards = await until(patienceMs, async () => {
    const found = (await discover(office, project)).cards.filter(isIt);
    return found.length > 0 ? found : undefined;
  });
  if (cards === undefined) return undefined;
  if (cards.length > 1) throw new Stopped(`${cards.length} threads came, and one is needed`);
  const hooked = recordsIn(home).some(({ hook, host }) => hook === 'session-start' && host === 'codex');
  return { session: cards[0], hooked };
}

/** A router that does not answer is no empty list. */
async function discover(office, project) {
  try {
    const { cards } = await office.answer(['message', 'discover', '--project', project, '--detail']);
    return { healthy: true, cards };
  } catch {
    return { healthy: false, cards: [] };
  }
}

const bodyOf = (
  code,
) => `This is a live check of Postbell, started by the owner of this account. Read-back code: ${code}
Please acknowledge this message, and answer it: tool message, action send, recipient ${self}, reply_to the id of this message,
and a payload that holds the code. Nothing else is asked of you.`;

const toThread = (project, session_id) => ['--project', project, '--recipient', session_id];

/** Never begins with a hyphen, which a command line takes for an option. */
const newCode = () => randomBytes(9).toString('hex');

/** To that exact thread; what the store answers, also where it refuses. */
async function sendTo({ office, project }, session_id, code) {
  const key = ['--sender', self, '--idempotency-key', code, '--payload-stdin', '--json'];
  const words = ['message', 'send', ...toThread(project, session_id), '--target-kind', 'session', ...key];
  const { stdout, stderr } = await office.command(words, bodyOf(code));
  const [answer] = [stdout, stderr].flatMap(jsonIn);
  if (answer === undefined) throw new Error(`postbell message send: ${stderr.trim()}`);
  const { code: refusal, details } = answer.error ?? {};
  return { ...(details ?? answer), ...(refusal !== undefined && { refusal }) };
}

function jsonIn(text) {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

/** Sends a code, and waits for the answer; what was left by then. */
async function exchange(scene, session) {
  const { terminal, home, office, project, patienceMs } = scene;
  await terminal.ask('Let the session be idle, and do not type into it. Press Enter to send:');
  const code = newCode();
  const sentAt = new Date().toISOString();
  const sent = await sendTo(scene, session.session_id, code);
  if (sent.message_id === undefined) throw new Stopped(`the message was not stored (${sent.refusal})`);
  terminal.say('Sent. Allow the tools of Postbell there if Codex asks; type nothing else.');
  const of = [...toThread(project, session.session_id), '--message-id', sent.message_id];
  const read = async () => ({
    inbox: (await office.answer(['inbox', 'receive', '--project', project, '--recipient', self])).messages,
    receipts: (await office.answer(['message', 'receipts', ...of])).receipts,
  });
  const isDone = ({ inbox, receipts }) =>
    inbox.some(({ reply_to }) => reply_to === sent.message_id) &&
    receipts.some(({ receipt_kind }) => receipt_kind === 'intake');
  await terminal.until(patienceMs, async () => (isDone(await read()) ? true : undefined));
  return { code, sentAt, sent, session, ...(await read()), records: recordsIn(home) };
}

/** What becomes of a message to a thread that has ended. */
async function ended(scene, { session_id }) {
  const { terminal, office, project, patienceMs } = scene;
  await terminal.ask('\nEnd the session there (/quit), then press Enter:');
  terminal.say('Waiting until the thread is gone (about a minute) ...');
  const isGone = async () => {
    const { healthy, cards } = await discover(office, project);
    return healthy && !cards.some((card) => card.session_id === session_id) ? true : undefined;
  };
  if ((await terminal.until(patienceMs, isGone)) === undefined)
    throw new Stopped('the thread stayed registered, or no router answered');
  const code = newCode();
  const sent = await sendTo(scene, session_id, code);
  const after = await discover(office, project);
  const discovery = {
    healthy: after.healthy,
    live: after.cards.some((card) => card.session_id === session_id),
  };
  if (sent.message_id === undefined) return { code, sent, discovery };
  const of = [...toThread(project, session_id), '--target-kind', 'session', '--message-id', sent.message_id];
  const { stdout } = await office.command(['message', 'fetch', ...of]);
  return { code, sent, discovery, fetched: jsonIn(stdout)[0] };
}
