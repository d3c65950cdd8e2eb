// One command: words in, one line out, an exit status. 0 success, 1 refused or failed; 2 belongs to `postbell wait`.

import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { describeError, isRefusal, Refusal, type Result } from '../../protocol/errors.ts';
import { version } from '../../protocol/version.ts';
import { parseWords } from './arguments.ts';
import { type CliContext, type Command, commands } from './commands.ts';
import { commandHelp, overview, sendHelp } from './help.ts';
import { readJson, readText } from './input.ts';
import { sentence, shortSend, shortSendFields } from './send.ts';

export interface Terminal {
  input: Readable & { isTTY?: boolean };
  out(text: string): void;
  err(text: string): void;
}

export interface CliOptions {
  words: readonly string[];
  terminal: Terminal;
  /** Opens the store; not called for help or wrong words. */
  open(): Promise<CliContext>;
  /** The account's name, and a fresh key, for the short form. */
  accountName(): string;
  freshKey(): string;
}

/** @returns the exit status */
export async function runCli(options: CliOptions): Promise<number> {
  const { words, terminal } = options;
  const json = words.includes('--json');
  try {
    const result = await perform(options);
    if (typeof result === 'string') terminal.out(`${result}\n`);
    else if (isRefusal(result)) return fail(terminal, result, json);
    else terminal.out(`${JSON.stringify(result)}\n`);
    return 0;
  } catch (error) {
    return fail(terminal, error, json);
  }
}

/** The line that a failed command prints. */
export function fail(terminal: Pick<Terminal, 'err'>, error: unknown, json: boolean): number {
  const shape = describeError(error);
  const line = json
    ? JSON.stringify({ error: shape })
    : `postbell: ${shape.code}: ${shape.message} (${shape.hint})`;
  terminal.err(`${line.replace(/[\r\n]+/g, ' ')}\n`);
  return 1;
}

async function perform(options: CliOptions): Promise<Result<object> | string> {
  const [first = '', second = ''] = options.words;
  const asksHelp = options.words.includes('--help');
  if (first === '' || first === '--help') return overview(version);
  if (first === '--version') return version;
  if (first === 'send') return asksHelp ? sendHelp : performSend(options);
  const name = `${first} ${second}`;
  const command = commands[name];
  if (command === undefined) return new Refusal('usage', `unknown command ${JSON.stringify(name.trim())}`);
  return asksHelp ? commandHelp(name, command) : performCommand(options, command);
}

async function performCommand(options: CliOptions, command: Command): Promise<Result<object>> {
  const { stdin } = command;
  const field = stdin === 'receipts' ? 'messages' : stdin;
  const { [field ?? '']: _, ...flags } = command.fields;
  const stdinSwitch = stdin && `${stdin}-stdin`;
  const parsed = parseWords(
    options.words.slice(2),
    flags,
    ['json', ...(stdinSwitch ? [stdinSwitch] : [])],
    0,
  );
  if (isRefusal(parsed)) return parsed;
  const { json: __, ...values } = parsed.values;
  if (stdinSwitch !== undefined && field !== undefined) {
    if (values[stdinSwitch] !== true) return new Refusal('usage', `--${stdinSwitch} is required`);
    delete values[stdinSwitch];
    const read = await readField(
      options.terminal.input,
      stdin === 'receipts' || values.content_type === 'application/json',
    );
    if (isRefusal(read)) return read;
    values[field] = read;
  }
  return withContext(options, (context) => command.run(context, values));
}

async function readField(input: Readable, isJson: boolean): Promise<Result<unknown>> {
  const text = await readText(input);
  return isRefusal(text) || !isJson ? text : readJson(text);
}

async function performSend(options: CliOptions): Promise<Result<object> | string> {
  const parsed = parseWords(options.words.slice(1), shortSendFields, ['json', 'session'], 1);
  if (isRefusal(parsed)) return parsed;
  const [recipient] = parsed.positionals;
  if (recipient === undefined) return new Refusal('usage', 'name the recipient');
  const { json, session, ...flags } = parsed.values;
  const body = await readBody(options.terminal);
  if (isRefusal(body)) return body;
  const answer = await withContext(options, (context) =>
    shortSend(context, {
      recipient,
      body,
      sender: options.accountName(),
      key: options.freshKey(),
      session: session === true,
      flags,
    }),
  );
  return isRefusal(answer) || json === true ? answer : sentence(answer);
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
  err('Message (an empty line ends it):\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input })) {
    if (line === '') break;
    lines.push(line);
  }
  return lines.join('\n');
}

async function withContext<T>(options: CliOptions, use: (context: CliContext) => Promise<T>): Promise<T> {
  const context = await options.open();
  try {
    return await use(context);
  } finally {
    context.desk.store.close();
  }
}
