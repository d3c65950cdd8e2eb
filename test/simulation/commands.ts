// Commands that people and agents run: each a process of its own that asks, prints and ends, or dies on the way.

import { isRefusal } from '../../src/protocol/errors.ts';
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
  const kind = dice.weighted({ plain: 50, update: 10, quiet: 5, session: 22, intended: 13 });
  if (kind === 'update') letter.status = 'update';
  if (kind === 'quiet') letter.quiet = true;
  if (kind === 'intended') letter.intended_session = host?.sessionId ?? town.someSession();
  if (kind === 'session') {
    letter.target_kind = 'session';
    letter.recipient = dice.chance(0.8) ? (host?.sessionId ?? town.someSession()) : town.someSession();
    if (dice.chance(0.1)) letter.status = 'update';
  }
  return letter;
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
  world.judges.deed({ kind: 'asked', call: 'send', key }, process);
  const answer = await calls.send(letter);
  const messageId = storedBy(answer);
  world.tally.count(isRefusal(answer) ? `refused ${answer.code}` : 'sends answered');
  if (messageId === undefined) return;
  const { project, recipient } = letter;
  town.known.push({ project, recipient, message_id: messageId });
  world.judges.deed({ kind: 'answered', call: 'send', key, messageId }, process);
  world.judges.deed({ kind: 'told', messageId, ...toldBy(answer) }, process);
}

export function sendCommand(town: Town): void {
  const letter = letterToSend(town);
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
    deliveryIds.push(...answer.events.map((event) => event.delivery_id));
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
