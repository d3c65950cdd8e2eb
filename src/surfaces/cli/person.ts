// What only a person may decide, at a terminal of his own. A guard and no boundary: a process with all rights of the account can
// imitate him, or edit the file.

import { Refusal, type Result } from '../../protocol/errors.ts';
import { typedWord } from '../../protocol/shell-words.ts';
import type { Terminal } from './run.ts';

export interface Situation {
  terminal: Terminal;
  /** A shell or a hook of an agent host runs this. */
  inAgentSession: boolean;
}

/** Refusal `operator_required` with the command, where no person is known to type. */
export function needsPerson(
  { terminal, inAgentSession }: Situation,
  words: readonly string[],
): Refusal | undefined {
  const why = inAgentSession
    ? 'an agent session does not decide whom this account trusts'
    : terminal.input.isTTY
      ? undefined
      : 'whom this account trusts is decided at a terminal, and this is none';
  if (why === undefined) return undefined;
  const command = ['postbell', ...words.filter((word) => word !== '--json')].map(typedWord).join(' ');
  return new Refusal('operator_required', `${why}; a person types, in a terminal of his own: ${command}`, {
    command,
  });
}

/** One line that he types; empty where the input ends. */
export async function asked({ input, err }: Terminal, question: string): Promise<string> {
  const { createInterface } = await import('node:readline');
  err(question);
  const lines = createInterface({ input });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    // A terminal left open would keep the command from ending.
    input.destroy();
  }
}

/** Whether he typed what stands at the end of the fingerprint. */
export async function agrees(terminal: Terminal, fingerprint: string): Promise<Result<true>> {
  const typed = await asked(terminal, 'To accept, type the last four characters of the fingerprint: ');
  return typed.trim().toLowerCase() === fingerprint.slice(-4)
    ? true
    : new Refusal('invalid_request', 'these are not its last four characters; nothing was changed');
}
