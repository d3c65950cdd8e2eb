// `postbell peer`: whom this account trusts, and how two accounts come to trust each other. A person decides, at a terminal.

import type { PairingCalls } from '../../peers/pairing/calls.ts';
import { isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { type ParsedWords, parseWords } from './arguments.ts';
import { askedText, listText, requestsText, whoText } from './peer-texts.ts';
import { isPeerVerb, type PeerVerb, peerVerbs } from './peer-verbs.ts';
import { agrees, needsPerson, type Situation } from './person.ts';

export interface PeerGround {
  calls: PairingCalls;
  /** Starts the router where none runs: it is what reaches the relays. */
  startRouter(): void;
  /** Prints this identity's address, then each request that comes. */
  waitForRequest(options: { json: boolean }): Promise<Result<object | string>>;
}

interface Given extends Situation {
  /** As they were typed, after `postbell`. */
  typed: readonly string[];
  parsed: ParsedWords;
  open(): Promise<Result<PeerGround>>;
}

const usage = (text: string): Refusal => new Refusal('usage', text);
const isJson = ({ parsed }: Given): boolean => parsed.switched.has('json');
const told = <T extends object>(
  given: Given,
  answer: Result<T>,
  text: (answer: T) => string,
): Result<T | string> => (isRefusal(answer) || isJson(given) ? answer : text(answer));

async function pair(given: Given): Promise<Result<object | string>> {
  const [target] = given.parsed.positionals;
  const name = given.parsed.values.as as string | undefined;
  if (target === undefined && name !== undefined) return usage('--as goes with the address of whom to ask');
  const refused = target === undefined ? undefined : needsPerson(given, given.typed);
  if (refused !== undefined) return refused;
  const ground = await given.open();
  if (isRefusal(ground)) return ground;
  if (target === undefined) {
    ground.startRouter();
    return ground.waitForRequest({ json: isJson(given) });
  }
  const asked = await ground.calls.ask({ target, ...(name !== undefined && { name }) });
  if (isRefusal(asked))
    return asked.code === 'invalid_request' && asked.details?.field === 'name' && name === undefined
      ? usage('--as NAME is required: how the peer is to be called here')
      : asked;
  ground.startRouter();
  return told(given, asked, askedText);
}

async function requests(given: Given): Promise<Result<object | string>> {
  const ground = await given.open();
  if (isRefusal(ground)) return ground;
  // Requests come while a router runs; a person who looks for one wants it to.
  if (!isJson(given)) ground.startRouter();
  // What an agent lists, its person has not seen.
  const byOperator = !given.inAgentSession && !isJson(given);
  return told(given, await ground.calls.requests({ byOperator }), requestsText);
}

async function accept(given: Given): Promise<Result<object | string>> {
  const [key] = given.parsed.positionals;
  const name = given.parsed.values.as as string | undefined;
  if (key === undefined) return usage('name the key, or the fingerprint, as peer requests shows it');
  if (name === undefined) return usage('--as NAME is required: how the peer is to be called here');
  const refused = needsPerson(given, given.typed);
  if (refused !== undefined) return refused;
  const ground = await given.open();
  if (isRefusal(ground)) return ground;
  const who = await ground.calls.whoIs({ request: key });
  if (isRefusal(who)) return who;
  given.terminal.err(`${whoText(who)}\n`);
  const sure = await agrees(given.terminal, who.fingerprint);
  if (isRefusal(sure)) return sure;
  const accepted = await ground.calls.accept({ key: who.key, name });
  if (!isRefusal(accepted)) ground.startRouter();
  return told(
    given,
    accepted,
    (answer) =>
      `${quoted(answer.name)} is a peer here now. The confirmation goes out by itself; once it has arrived, each can write to the other.`,
  );
}

async function reject(given: Given): Promise<Result<object | string>> {
  const [key] = given.parsed.positionals;
  if (key === undefined) return usage('name the key, or the fingerprint, as peer requests shows it');
  const ground = await decided(given);
  if (isRefusal(ground)) return ground;
  const rejected = await ground.calls.reject(key);
  return told(given, rejected, () => 'The request is dropped; nothing was sent.');
}

async function list(given: Given): Promise<Result<object | string>> {
  const ground = await given.open();
  return isRefusal(ground) ? ground : told(given, ground.calls.list(), listText);
}

async function add(given: Given): Promise<Result<object | string>> {
  const [name, key] = given.parsed.positionals;
  if (name === undefined || key === undefined) return usage('peer add takes NAME and KEY');
  const ground = await decided(given);
  if (isRefusal(ground)) return ground;
  const added = await ground.calls.add({ name, key });
  return told(given, added, (answer) =>
    [
      `${quoted(answer.name)} is a peer here now: ${answer.key}`,
      `  fingerprint  ${answer.fingerprint}`,
      'Nothing was sent. It must hold this account\u2019s key as well, and one of you asks the other by: postbell peer pair ADDRESS',
    ].join('\n'),
  );
}

async function remove(given: Given): Promise<Result<object | string>> {
  const [name] = given.parsed.positionals;
  if (name === undefined) return usage('name the peer');
  const ground = await decided(given);
  if (isRefusal(ground)) return ground;
  const rotate = given.parsed.switched.has('rotate');
  const removed = await ground.calls.remove({ name, rotate });
  return told(given, removed, (answer) =>
    [
      `${quoted(answer.name)} is no peer now, nor asked to be one. Nothing more goes to it; what a relay has already may still arrive there. Its messages that are here stay.`,
      ...(rotate ? ['This machine has another queue now, and the other peers are told of it.'] : []),
    ].join('\n'),
  );
}

async function decided(given: Given): Promise<Result<PeerGround>> {
  return needsPerson(given, given.typed) ?? given.open();
}

const runs: Readonly<Record<PeerVerb, (given: Given) => Promise<Result<object | string>>>> = {
  pair,
  requests,
  accept,
  reject,
  list,
  add,
  remove,
};

/** @param typed all words, `peer` first */
export async function peerCommand(
  typed: readonly string[],
  given: Omit<Given, 'typed' | 'parsed'>,
): Promise<Result<object | string>> {
  const [, name = '', ...words] = typed;
  if (!isPeerVerb(name))
    return usage(`peer takes ${Object.keys(peerVerbs).join(', ')}; see postbell peer --help`);
  const { fields = {}, switches = [], positionalsMax } = peerVerbs[name];
  const parsed = parseWords(words, fields, ['json', ...switches], positionalsMax);
  if (isRefusal(parsed)) return parsed;
  return runs[name]({ ...given, typed, parsed });
}
