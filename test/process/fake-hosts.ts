// Programs in the places of hosts and of git, each of which notes with which words and in which environment it was started.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './postbell.ts';

export interface Start {
  program: string;
  argv: string[];
  env: Record<string, string>;
}

export interface FakeHosts {
  /** The folder that PATH names first. */
  bin: string;
  starts(program?: string): Start[];
  /** What `codex queue` does from now on. */
  queue(answer: { says?: string; exits: number }): void;
}

export const queuedLine = 'Queued message 0199aaaa-0000-7000-8000-00000000000f for thread x';

export function fakeHosts(dir: string): FakeHosts {
  const bin = path.join(dir, 'fake-bin');
  mkdirSync(bin);
  const log = path.join(bin, 'starts.jsonl');
  const answerFile = path.join(bin, 'queue.json');
  const module = pathToFileURL(path.join(root, 'test', 'process', 'fake-codex.mjs')).href;
  const text = (program: string, then: string): string => `#!${process.execPath}
const fs = require('node:fs');
const note = { program: ${JSON.stringify(program)}, argv: process.argv.slice(2), env: process.env };
fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify(note) + '\\n');
${then}
`;
  const programs = {
    git: `require('node:child_process').spawn('/usr/bin/git', process.argv.slice(2), { stdio: 'inherit' }).on('exit', (code) => process.exit(code));`,
    claude: '',
    codex: `if (process.argv[2] === 'queue') {
  const { says, exits } = JSON.parse(fs.readFileSync(${JSON.stringify(answerFile)}, 'utf8'));
  if (says) (exits === 0 ? process.stdout : process.stderr).write(says + '\\n');
  process.exitCode = exits;
} else import(${JSON.stringify(module)}).then(({ run }) => run(${JSON.stringify(bin)}));`,
  };
  for (const [name, then] of Object.entries(programs))
    writeFileSync(path.join(bin, name), text(name, then), { mode: 0o755 });
  const queue: FakeHosts['queue'] = (answer) => writeFileSync(answerFile, JSON.stringify(answer));
  queue({ says: queuedLine, exits: 0 });
  const starts: FakeHosts['starts'] = (program) =>
    (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [])
      .map((line) => JSON.parse(line) as Start)
      .filter((one) => program === undefined || one.program === program);
  return { bin, starts, queue };
}
