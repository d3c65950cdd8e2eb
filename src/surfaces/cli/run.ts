// One command: words in, one line out, an exit status. 0 success, 1 refused or failed; 2 belongs to `postbell wait`.

import type { Readable } from 'node:stream';
import { awaitReply } from '../../mailbox/reply.ts';
import { Fault, failureLine, isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { inertJson } from '../../protocol/untrusted.ts';
import { version } from '../../protocol/version.ts';
import { agentSetup, type SetUp } from './agent.ts';
import { parseWords } from './arguments.ts';
import { type CliContext, type Command, commands } from './commands.ts';
import { helpFor, overview } from './help.ts';
import { readJson, readText } from './input.ts';
import { shortRead, shortReadFields } from './read.ts';
import { answered, liveElsewhere, sentence, shortSend, shortSendFields } from './send.ts';

export interface Terminal {
  input: Readable & { isTTY?: boolean };
  /** Resolves once it is written. */
  out(text: string): Promise<void>;
  err(text: string): void;
}

export interface CliOptions {
  words: readonly string[];
  terminal: Terminal;
  /** Opens the store; not called for help or wrong words. */
  open(): Promise<Omit<CliContext, 'print'> & { close(): void }>;
  /** Writes the config of a host. */
  setUp: SetUp;
  /** The account's name, and a fresh key, for the short form. */
  accountName(): string;
  freshKey(): string;
  /** Whether a shell of an agent host runs it, which may be in a sandbox of that host. */
  inHostShell: boolean;
}

/** @returns the exit status */
export async function runCli(options: CliOptions): Promise<number> {
  const { words, terminal } = options;
  const json = words.includes('--json');
  try {
    const result = await perform(options);
    if (isRefusal(result)) return fail(options, result, json);
    await terminal.out(typeof result === 'string' ? `${result}\n` : line(result));
    return 0;
  } catch (error) {
    return fail(options, error, json);
  }
}

/** JSON in one line that moves no terminal and misleads no model, whatever others wrote into it; the value is the same. */
const line = (value: object): string => `${inertJson(value)}\n`;

/** What a sandbox keeps a command from. */
const outOfReach: ReadonlySet<string> = new Set([
  'store_unreadable',
  'store_unwritable',
  'router_unreachable',
  // A sandbox may show a repository that is none.
  'project_unavailable',
]);

function fail({ terminal, inHostShell }: CliOptions, error: unknown, json: boolean): number {
  const advised =
    inHostShell && error instanceof Fault && outOfReach.has(error.code)
      ? new Fault(
          error.code,
          `${error.message}; if this shell is in a sandbox, use the Postbell tools, which run outside it`,
        )
      : error;
  terminal.err(failureLine(advised, json));
  return 1;
}

async function perform(options: CliOptions): Promise<Result<object> | string> {
  const { terminal } = options;
  const [first = '', second = ''] = options.words;
  if (['', '--help', '-h', 'help'].includes(first)) return overview(version);
  if (['--version', '-v', 'version'].includes(first)) return version;
  const group = helpFor(first, '') === undefined ? '' : `; see postbell ${first} --help`;
  const unknown = new Refusal(
    'usage',
    `unknown command ${JSON.stringify(`${first} ${second}`.trim())}${group}`,
  );
  if (options.words.includes('--help')) return helpFor(first, second) ?? unknown;
  if (first === 'send') return performSend(options);
  if (first === 'read') return performRead(options);
  if (first === 'agent' && second === 'setup')
    return agentSetup(options.words.slice(2), options.setUp, terminal.err);
  const command = commands[`${first} ${second}`];
  return command === undefined ? unknown : performCommand(options, command);
}

async function performCommand(options: CliOptions, command: Command): Promise<Result<object>> {
  const { stdin, word } = command;
  const { [stdin?.field ?? '']: _, [word ?? '']: __, ...flags } = command.fields;
  const switches = stdin === undefined ? ['json'] : ['json', stdin.switch];
  const parsed = parseWords(
    options.words.slice(2),
    flags,
    switches,
    word === undefined ? 0 : 1,
    command.flags,
  );
  if (isRefusal(parsed)) return parsed;
  const { values, switched, positionals } = parsed;
  // A field that goes by another name here is missed by that name.
  const missed = Object.entries(command.flags ?? {}).find(
    ([field]) => flags[field]?.required && values[field] === undefined,
  );
  if (missed !== undefined) return new Refusal('usage', `--${missed[1]} is required`);
  if (word !== undefined) {
    if (positionals[0] === undefined) return new Refusal('usage', `name the ${word}`);
    values[word] = positionals[0];
  }
  if (stdin !== undefined) {
    if (!switched.has(stdin.switch)) return new Refusal('usage', `--${stdin.switch} is required`);
    const isJson = stdin.isJson === true || values.content_type === 'application/json';
    const read = await readField(options.terminal.input, isJson);
    if (isRefusal(read)) return read;
    values[stdin.field] = read;
  }
  return withContext(options, (context) => command.run(context, values));
}

async function readField(input: Readable, isJson: boolean): Promise<Result<unknown>> {
  const text = await readText(input);
  return isRefusal(text) || !isJson ? text : readJson(text);
}

async function performSend(options: CliOptions): Promise<Result<object> | string> {
  const parsed = parseWords(options.words.slice(1), shortSendFields, ['json', 'session', 'wait'], 99);
  if (isRefusal(parsed)) return parsed;
  const { switched } = parsed;
  const [recipient, ...surplus] = parsed.positionals;
  if (recipient === undefined) return new Refusal('usage', 'name the recipient');
  if (surplus.length > 0) return new Refusal('usage', 'send takes one recipient; the text comes from stdin');
  const body = await readBody(options.terminal);
  if (isRefusal(body)) return body;
  return withContext(options, async (context) => {
    const answer = await shortSend(context, {
      recipient,
      body,
      accountName: options.accountName(),
      key: options.freshKey(),
      session: switched.has('session'),
      replyWaitMs: switched.has('wait') && switched.has('json') ? limits.commandReplyWaitMsMax : undefined,
      flags: parsed.values,
    });
    if (isRefusal(answer) || switched.has('json')) return answer;
    if (answer.peer !== undefined) await context.startRouter();
    const carried = (context.desk.link?.relays.length ?? 0) > 0;
    const said = sentence(answer, liveElsewhere(context, answer), carried);
    if (!switched.has('wait')) return said;
    await options.terminal.out(`${said}\n`);
    return answered(await awaitReply(context.desk, answer, context.caller, limits.commandReplyWaitMsMax));
  });
}

async function performRead(options: CliOptions): Promise<Result<string>> {
  const parsed = parseWords(options.words.slice(1), shortReadFields, ['json'], 1);
  if (isRefusal(parsed)) return parsed;
  const { accountName, terminal } = options;
  const [name] = parsed.positionals;
  return withContext(options, (context) =>
    shortRead(context, { name, accountName: accountName(), flags: parsed.values }, (text) =>
      terminal.out(text),
    ),
  );
}

/** From a pipe whole, without its last line break; at a terminal line by line until an empty line. */
async function readBody(terminal: Terminal): Promise<Result<string>> {
  const { input } = terminal;
  const text = input.isTTY ? await typed(terminal) : await readText(input);
  if (isRefusal(text)) return text;
  const body = text.replace(/\r?\n$/, '');
  return body === '' ? new Refusal('invalid_request', 'the message is empty', { field: 'payload' }) : body;
}

async function typed({ input, err }: Terminal): Promise<string> {
  // Loaded where somebody types: it costs every other command 5 percent of its start.
  const { createInterface } = await import('node:readline');
  err('Message (an empty line ends it):\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input })) {
    if (line === '') break;
    lines.push(line);
  }
  // Nothing more is read; a terminal left open would keep the command from ending.
  input.destroy();
  return lines.join('\n');
}

async function withContext<T>(options: CliOptions, use: (context: CliContext) => Promise<T>): Promise<T> {
  const context = await options.open();
  const print = (value: object): void => void options.terminal.out(line(value));
  try {
    return await use({ ...context, print });
  } finally {
    context.close();
  }
}
