// Commands that people and agents run: each a process of its own that asks, prints and ends, or dies on the way.

import { isRefusal, type Refusal } from '../../src/protocol/errors.ts';
import { portsOf } from './ports.ts';
import type { Process } from './process.ts';
import {
  callsOf,
  commandDesk,
  isAnnounced,
  type Scope,
  type SendRequest,
  storedBy,
  toldBy,
} from './product.ts';
import type { Town } from './town.ts';

type Calls = ReturnType<typeof callsOf>;

/** Runs one call in a process of its own. */
function command(
  town: Town,
  label: string,
  run: (calls: Calls, process: Process) => Promise<void> | void,
): void {
  const { world } = town;
  const process = world.spawn('command');
  const ports = portsOf(world, process, town.hooks.tamper);
  world.later(process, label, world.delayMs(), () => {
    const calls = callsOf(commandDesk(ports, process), { transport: 'cli', source_host: 'cli' });
    Promise.resolve()
      .then(() => run(calls, process))
      .catch((error: unknown) => faulted(town, process, error))
      .finally(() => process.end());
  });
}

function faulted({ world }: Town, process: Process, error: unknown): void {
  if (isAnnounced(error)) world.tally.count(`fault ${(error as { code: string }).code}`);
  else world.defect(process, error);
}

/** A letter to a principal, to one session of it, or to an exact session. */
export function newLetter(town: Town): SendRequest {
  const { dice } = town.world;
  const letter: SendRequest = {
    project: dice.pick(town.projects),
    sender: 'alice',
    recipient: dice.pick(town.principals),
    idempotency_key: town.newKey(),
    payload: 'a letter',
  };
  const host = town.hosts.length > 0 ? dice.pick(town.hosts) : undefined;
  if (host !== undefined && dice.chance(0.6)) {
    letter.project = host.project;
    letter.recipient = host.session().principal;
  }
  const kind = dice.weighted({ plain: 40, update: 5, task: 18, quiet: 5, session: 28, intended: 12 });
  if (kind === 'task') return ofTask(town, letter);
  if (kind === 'update') letter.status = 'update';
  if (kind === 'quiet') letter.quiet = true;
  if (kind === 'intended') letter.intended_session = host?.sessionId ?? town.someSession();
  if (kind === 'session') toSession(town, letter, host?.sessionId);
  if (dice.chance(0.2)) answering(town, letter);
  return expiring(town, letter);
}

function toSession(town: Town, letter: SendRequest, session: string | undefined): void {
  const { dice, facts } = town.world;
  letter.target_kind = 'session';
  letter.recipient = dice.chance(0.9) ? (session ?? town.someSession()) : town.someSession();
  if (dice.chance(0.1)) letter.status = 'update';
  if (dice.chance(0.4)) letter.fallback_to_principal = true;
  if (!dice.chance(0.2)) return;
  const known = facts.connectionOf(letter.project, letter.recipient)?.generation ?? 1;
  letter.expected_generation = dice.chance(0.7) ? known : known + 1;
}

/** Progress of a task, its end, or what comes after its end. */
function ofTask(town: Town, letter: SendRequest): SendRequest {
  const { dice } = town.world;
  const { idempotency_key } = letter;
  const task = town.someTask(() => {
    const scope: Partial<SendRequest> = {};
    const kind = dice.weighted({ principal: 50, intended: 30, session: 20 });
    if (kind === 'intended') scope.intended_session = town.someSession();
    if (kind === 'session') Object.assign(scope, { target_kind: 'session', recipient: town.someSession() });
    return { ...letter, ...scope, task_id: `task-${idempotency_key}` };
  });
  const status = dice.weighted({ update: 60, needs_input: 10, result: 8, failed: 3, canceled: 3, none: 8 });
  const told: SendRequest = { ...task, idempotency_key, ...(status !== 'none' && { status }) };
  if (told.target_kind === 'session' && dice.chance(0.4)) told.fallback_to_principal = true;
  return expiring(town, told);
}

/** Some answers say nothing, and wake nobody. */
function answering(town: Town, letter: SendRequest): void {
  const { dice } = town.world;
  const recent = town.known.slice(-20);
  if (recent.length === 0) return;
  letter.reply_to = dice.pick(recent).message_id;
  if (dice.chance(0.3)) letter.payload = 'Thanks!';
}

function expiring({ world }: Town, letter: SendRequest): SendRequest {
  const { dice } = world;
  if (!dice.chance(0.12)) return letter;
  const ms = dice.chance(0.5) ? dice.between(1, 5_000) : dice.between(5_000, 300_000);
  return { ...letter, expires_at: new Date(world.nowMs() + ms).toISOString() };
}

/** A new letter, or one tried before, sent again under its key. */
export function letterToSend(town: Town): SendRequest {
  const { dice } = town.world;
  const tried = [...town.tried.values()];
  if (tried.length > 0 && dice.chance(0.15)) {
    town.world.tally.count('sent again');
    return dice.pick(tried);
  }
  const letter = newLetter(town);
  town.tried.set(letter.idempotency_key, letter);
  const [oldest] = town.tried.keys();
  if (town.tried.size > 30 && oldest !== undefined) town.tried.delete(oldest);
  return letter;
}

export async function sendBy(town: Town, calls: Calls, process: Process, letter: SendRequest): Promise<void> {
  const { world } = town;
  const key = letter.idempotency_key;
  world.tally.count('sends');
  world.judges.deed({ kind: 'asked', call: 'send', key, letter }, process);
  const answer = await calls.send(letter);
  const messageId = storedBy(answer);
  world.tally.count(isRefusal(answer) ? refusalOf(answer) : 'sends answered');
  if (messageId === undefined) return;
  // A sender that was refused tries again.
  if (isRefusal(answer) && world.dice.chance(0.4))
    world.later(undefined, 'again', world.dice.between(500, 20_000), () => sendByCommand(town, letter));
  world.judges.deed({ kind: 'answered', call: 'send', key, messageId }, process);
  const { project, recipient } = world.facts.deliveryOfMessage.get(messageId) ?? letter;
  town.known.push({ project, recipient, message_id: messageId });
  world.judges.deed({ kind: 'told', messageId, ...toldBy(answer) }, process);
}

const refusalOf = ({ code, details }: Refusal): string =>
  `refused ${code}${details?.reason === undefined ? '' : ` (${String(details.reason)})`}`;

export function sendCommand(town: Town): void {
  sendByCommand(town, letterToSend(town));
}

function sendByCommand(town: Town, letter: SendRequest): void {
  command(town, `sends ${letter.idempotency_key} to ${letter.recipient}`, (calls, process) =>
    sendBy(town, calls, process, letter),
  );
}

/** One of the other calls, about some message. */
export function otherCommand(town: Town): void {
  const { dice } = town.world;
  const recent = town.known.slice(-40);
  const kind = dice.weighted({ fetch: 3, poll: 3, receipts: 2, intake: 9, ack: 2 });
  const scope = kind === 'intake' ? longestWaiting(town) : recent[dice.below(Math.max(1, recent.length))];
  if (scope === undefined) return;
  town.world.tally.count(`calls of ${kind}`);
  command(town, kind, (calls, process) => call(town, calls, process, kind, scope));
}

/** Mail that nobody may be left to take in: a person clears it away. */
function longestWaiting({ projects, world }: Town): Scope | undefined {
  const { dice, facts } = world;
  const project = dice.pick(projects);
  for (const delivery of facts.open.get(project)?.values() ?? [])
    if (delivery.intended === undefined || dice.chance(0.2))
      return { project, recipient: delivery.recipient, message_id: delivery.messageId };
  return undefined;
}

/** Page by page, until nothing new comes. */
async function pollAll(town: Town, calls: Calls, process: Process, scope: Scope): Promise<void> {
  const { facts, judges } = town.world;
  const { project, recipient } = scope;
  const since = facts.deliveries.size;
  const deliveryIds: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const answer = await calls.poll(project, recipient, cursor);
    if (isRefusal(answer)) return;
    for (const event of answer.events) if ('delivery_id' in event) deliveryIds.push(event.delivery_id);
    if (answer.events.length === 0) break;
    const next = answer.next_cursor ?? undefined;
    // No new place could be named: the same page would come again.
    if (next === cursor) return;
    cursor = next;
  }
  judges.deed({ kind: 'polled', project, recipient, deliveryIds, since }, process);
}

async function call(
  town: Town,
  calls: Calls,
  process: Process,
  kind: 'fetch' | 'poll' | 'receipts' | 'intake' | 'ack',
  scope: Scope,
): Promise<void> {
  const { judges } = town.world;
  if (kind === 'fetch' || kind === 'receipts') {
    const answer = calls[kind](scope);
    judges.deed({ kind: 'told', messageId: scope.message_id, ...toldBy(answer) }, process);
    judges.deed(
      { kind: 'found', messageId: scope.message_id, found: !isRefusal(answer) || kind === 'fetch' },
      process,
    );
  } else if (kind === 'poll') await pollAll(town, calls, process, scope);
  else {
    const messageIds = [scope.message_id];
    judges.deed({ kind: 'asked', call: 'consume', session: undefined, messageIds }, process);
    const answer = await calls[kind](scope, `${kind}-1`);
    if (kind === 'intake' && !isRefusal(answer))
      judges.deed({ kind: 'answered', call: 'consume', messageIds }, process);
  }
}
