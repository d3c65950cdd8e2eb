// The two-minute story of `postbell demo`: a message is stored, rung, its reader and its router are killed, and it is read
// all the same. Each step prints what happened and what that proves.

import type { Fact } from '../../protocol/receipts.ts';
import { killed, leaveRunning, openMcp, run, type Stage } from './actors.ts';

const reviewer = {
  CLAUDE_CODE_SESSION_ID: 'demo-reviewer',
  POSTBELL_RECIPIENT: 'reviewer',
  CLAUDE_CODE_SESSION_ATTENDED: '1',
};
const listener = { input: '{"session_id":"demo-reviewer","hook_event_name":"Stop"}', env: reviewer };

const meaning: Readonly<Record<string, string>> = {
  attempt: 'the router tried to hand a notice to the session',
  host_accept: 'a notice was queued for the session\u2019s listener; not that anybody saw it',
  intake: 'a call in the recipient\u2019s name took the message in; not that it understood',
  ack: 'it said so; not that the work is done',
};

/** @returns whether everything that was sent was taken in */
export async function tell(stage: Stage, say: (text: string) => void): Promise<boolean> {
  say(`Throw-away home ${stage.env.POSTBELL_HOME}. Every process below is a real one.\n`);
  const router = await openRouter(stage, say);
  const first = await openMcp(stage, reviewer);
  say(
    `2. A session "reviewer" connects (pid ${first.pid}); its host arms the listener, as Claude Code would.`,
  );
  await sessionIsLive(stage);
  const armed = run(stage, ['wait'], listener);

  const sent = JSON.parse(await send(stage, 'builder', 'reviewer', 'q', 'please review the parser')) as Sent;
  say('3. "builder" sends a message and is answered:');
  say(`     ${sent.message_id}  ${sent.delivery_state}, recipient_presence ${sent.recipient_presence}`);
  say('   proves: it is on disk (synchronous=FULL). Not that anybody was told.');

  const woken = await armed;
  if (woken.code !== 2) throw new Error(`the listener ended with ${woken.code} and did not wake its host`);
  say(
    `4. The listener wakes its host: exit ${woken.code} after ${Math.round(woken.tookMs)} ms in all, and prints`,
  );
  say(woken.err.trimEnd().replace(/^/gm, '     | '));
  say('   proves: the bell rang. The notice holds no body and no word of the sender.');

  await accepted(stage, sent.message_id);
  await Promise.all([killed(router), first.kill()]);
  say(
    `5. kill -9: the router (pid ${router.pid}) and the reviewer (pid ${first.pid}), before it read anything.`,
  );
  const second = await openMcp(stage, reviewer);
  say(`6. The same session starts again (pid ${second.pid}); it starts a router by itself.`);
  const answered = await readAndAnswer(stage, second, say);
  await printReceipts(stage, sent.message_id, say);
  const read = await answerOf(stage, say);
  const kept = answered === sent.message_id && read;
  say(
    kept
      ? '\nTwo sent, two taken in, two processes killed, nothing lost.'
      : '\nSOMETHING WAS LOST: please report it.',
  );
  return kept;
}

interface Sent {
  message_id: string;
  delivery_state: string;
  recipient_presence: string;
}

async function openRouter(stage: Stage, say: (text: string) => void) {
  const router = leaveRunning(stage, ['router']);
  await eventually(stage, async () => (await run(stage, ['router', 'status'])).code === 0);
  say(`1. A router runs (pid ${router.pid}): it knows who is alive, and holds no mail.`);
  return router;
}

/** Reads, acknowledges and answers. @returns the id of what it read first */
async function readAndAnswer(
  stage: Stage,
  session: Awaited<ReturnType<typeof openMcp>>,
  say: (text: string) => void,
): Promise<string | undefined> {
  const { messages } = (await session.call('receive_messages', {})) as {
    messages: { message_id: string; payload: string; receipt: object }[];
  };
  const [mail] = messages;
  say(`7. It calls receive_messages and gets ${messages.length}: ${JSON.stringify(mail?.payload)}`);
  say('   proves: a message waits until it is taken in, whoever dies.');
  await session.call('acknowledge_messages', { messages: messages.map(({ receipt }) => receipt) });
  await session.call('message', {
    action: 'send',
    sender: 'reviewer',
    recipient: 'builder',
    idempotency_key: 'a',
    payload: 'the parser is fine',
    reply_to: mail?.message_id,
  });
  await sessionIsLive(stage);
  return mail?.message_id;
}

async function factsOf(stage: Stage, message_id: string): Promise<Fact[]> {
  const scope = ['--project', stage.project, '--recipient', 'reviewer', '--message-id', message_id];
  const { out } = await run(stage, ['message', 'receipts', ...scope]);
  return (JSON.parse(out) as { receipts: Fact[] }).receipts;
}

/** The router has written that the host accepted: the story is of what comes after. */
const accepted = (stage: Stage, message_id: string): Promise<void> =>
  eventually(stage, async () =>
    (await factsOf(stage, message_id)).some(({ receipt_kind }) => receipt_kind === 'host_accept'),
  );

async function printReceipts(stage: Stage, message_id: string, say: (text: string) => void): Promise<void> {
  const receipts = await factsOf(stage, message_id);
  say('8. The sender reads the receipts; each is a fact of its own:');
  for (const { receipt_kind, value, recorded_at } of receipts)
    say(`     ${recorded_at}  ${receipt_kind} ${value}: ${meaning[receipt_kind] ?? ''}`);
}

async function answerOf(stage: Stage, say: (text: string) => void): Promise<boolean> {
  const inbox = ['--project', stage.project, '--recipient', 'builder'];
  const { messages } = JSON.parse((await run(stage, ['inbox', 'receive', ...inbox])).out) as {
    messages: { payload: string; receipt: object }[];
  };
  say(`9. "builder" reads the answer: ${JSON.stringify(messages[0]?.payload)}`);
  const input = JSON.stringify(messages.map(({ receipt }) => receipt));
  const done = await run(stage, ['inbox', 'acknowledge', ...inbox, '--receipts-stdin'], { input });
  return messages.length === 1 && (JSON.parse(done.out) as { acknowledged: number }).acknowledged === 1;
}

async function send(
  stage: Stage,
  sender: string,
  recipient: string,
  key: string,
  input: string,
): Promise<string> {
  const to = [
    '--project',
    stage.project,
    '--sender',
    sender,
    '--recipient',
    recipient,
    '--idempotency-key',
    key,
  ];
  const { code, out, err } = await run(stage, ['message', 'send', ...to, '--payload-stdin'], { input });
  if (code !== 0) throw new Error(`the send failed: ${err}`);
  return out;
}

const sessionIsLive = (stage: Stage): Promise<void> =>
  eventually(stage, async () =>
    (await run(stage, ['message', 'discover', '--project', stage.project])).out.includes('demo-reviewer'),
  );

const patienceMs = 20_000;
const lookAgainMs = 50;

async function eventually({ clock }: Stage, look: () => Promise<boolean>): Promise<void> {
  const untilMs = clock.elapsedMs() + patienceMs;
  while (!(await look())) {
    if (clock.elapsedMs() > untilMs) throw new Error('the demo did not come this far in time');
    await new Promise<void>((resolve) => clock.after(lookAgainMs, resolve));
  }
}
