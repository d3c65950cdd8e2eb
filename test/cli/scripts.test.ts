// Runs the scripts of this folder. A script is read as it would be typed:
//
//   # what it shows [MSG-nnn]
//   $ postbell message poll --project p     a command, with {name} replaced by what was captured
//   < text                                   a line of its stdin; <- text without the line break
//   > text                                   its stdout: … stands for anything, {name} captures up to a quote
//   ! text                                   its stderr, in the same way
//   ? 1                                      its exit status, 0 where none is given
//
// Output that is not named must be empty.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeHome } from '../process/home.ts';
import { type Env, postbell } from '../process/postbell.ts';

interface Step {
  line: number;
  words: string;
  input: string;
  out: string;
  err: string;
  code: number;
}

interface Scene {
  title: string;
  steps: Step[];
}

const folder = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);

function read(file: string): Scene[] {
  const scenes: Scene[] = [];
  for (const [index, text] of readFileSync(path.join(folder, file), 'utf8').split('\n').entries()) {
    const [mark, rest] = [text.split(' ', 1)[0] as string, text.slice(text.indexOf(' ') + 1)];
    const step = scenes.at(-1)?.steps.at(-1);
    if (text === '') continue;
    if (mark === '#') scenes.push({ title: rest, steps: [] });
    else if (mark === '$')
      scenes.at(-1)?.steps.push({ line: index + 1, words: rest, input: '', out: '', err: '', code: 0 });
    else if (step !== undefined && mark === '<') step.input += `${rest}\n`;
    else if (step !== undefined && mark === '<-') step.input += rest;
    else if (step !== undefined && mark === '>') step.out += `${rest}\n`;
    else if (step !== undefined && mark === '!') step.err += `${rest}\n`;
    else if (step !== undefined && mark === '?') step.code = Number(rest);
    else throw new Error(`${file}:${index + 1}: not a line of a script`);
  }
  return scenes;
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The expectation as a pattern whose groups are its captures. */
function pattern(text: string): RegExp {
  const parts = text.split(/(…|\{[a-z_]+\})/);
  const body = parts.map((part) =>
    part === '…'
      ? '[^\\n]*'
      : /^\{[a-z_]+\}$/.test(part)
        ? `(?<${part.slice(1, -1)}>[^"\\n]+)`
        : escaped(part),
  );
  return new RegExp(`^${body.join('')}$`);
}

/** Words as a shell would split them: quotes group, nothing else is special. */
function split(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map((match) => match[1] ?? (match[2] as string));
}

async function play(steps: Step[], env: Env, project: string): Promise<void> {
  const captured = new Map<string, string>();
  const filled = (text: string): string =>
    text.replace(/\{([a-z_]+)\}/g, (whole, name: string) => captured.get(name) ?? whole);
  for (const step of steps) {
    const [program, ...words] = split(filled(step.words));
    expect(program).toBe('postbell');
    const { code, stdout, stderr } = await postbell(env, project, words, filled(step.input));
    const where = `line ${step.line}: ${step.words}`;
    expect(stderr, where).toMatch(pattern(filled(step.err)));
    expect(stdout, where).toMatch(pattern(filled(step.out)));
    expect(code, where).toBe(step.code);
    for (const [name, value] of Object.entries(pattern(filled(step.out)).exec(stdout)?.groups ?? {}))
      captured.set(name, value);
  }
}

const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));

describe.each(files)('%s', (file) => {
  it.each(read(file).map((scene) => [scene.title, scene] as const))('%s', async (_, { steps }) => {
    expect(steps.length).toBeGreaterThan(0);
    const home = makeHome();
    try {
      await play(steps, home.env, home.project);
    } finally {
      await home.end();
    }
  });
});
