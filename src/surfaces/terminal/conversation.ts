// A person's lines to an agent, and the agent's words to the person, in a terminal that nobody else draws on. A line is a
// prompt, or the answer to the one question that is open.

import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { beginningOf, harmless, quoted } from '../../protocol/json.ts';

export interface Conversation {
  show(text: string): void;
  /** Whether the person says yes. Anything else, the end of the input, or of the question itself, is no. */
  ask(title: string, withdrawn: AbortSignal): Promise<boolean>;
  close(): void;
}

export interface ConversationOptions {
  input: Readable;
  output: Writable;
  onLine(line: string): void;
  /** The person has ended the input. */
  onEnd(): void;
}

interface Question {
  text: string;
  answer(yes: boolean): void;
}

const titleCharactersMax = 500;

export function converse({ input, output, onLine, onEnd }: ConversationOptions): Conversation {
  const lines = createInterface({ input, terminal: false });
  const asked: Question[] = [];
  /** One at a time: what a person reads last is what the next line answers. */
  const put = (): void => void (asked[0] !== undefined && output.write(asked[0].text));
  output.on('error', () => {});
  lines.on('line', (line) => {
    const question = asked.shift();
    if (question === undefined) {
      if (line.trim() !== '') onLine(line);
      return;
    }
    question.answer(/^\s*y(?:es)?\s*$/i.test(line));
    put();
  });
  const refuseAll = (): void => {
    for (const { answer } of asked.splice(0)) answer(false);
  };
  /** Else the next line, meant for nobody or as a prompt, would be its answer. */
  const withdraw = (question: Question): void => {
    const at = asked.indexOf(question);
    if (at === -1) return;
    asked.splice(at, 1);
    question.answer(false);
    if (at > 0) return;
    output.write('\nThat question needs no answer any more.\n');
    put();
  };
  let closed = false;
  lines.on('close', () => {
    refuseAll();
    if (!closed) onEnd();
  });
  return {
    show: (text) => void output.write(text.split('\n').map(harmless).join('\n')),
    ask: (title, withdrawn) => {
      if (closed || withdrawn.aborted) return Promise.resolve(false);
      const shown = beginningOf(title, titleCharactersMax);
      const hidden = Array.from(title).length - titleCharactersMax;
      const more = hidden > 0 ? ` and ${hidden} characters more, which are NOT shown` : '';
      const text = `\nThe agent asks to call ${quoted(shown)}${more}. Allow it once? [y/N] `;
      return new Promise((answer) => {
        const question = { text, answer };
        withdrawn.addEventListener('abort', () => withdraw(question));
        asked.push(question);
        if (asked.length === 1) put();
      });
    },
    close: () => {
      closed = true;
      lines.close();
    },
  };
}
