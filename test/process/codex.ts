// A program in the place of Codex, in a directory of its own: what it does, and what it was asked.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './postbell.ts';

export interface Entry {
  argv?: string[];
  env?: Record<string, string>;
  cwd?: string;
  pid?: number;
  child?: number;
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: unknown;
}

export interface FakeCodex {
  /** The folder that PATH may name, and the program in it. */
  bin: string;
  program: string;
  /** What it does from now on. */
  play(scene: object): void;
  entries(): Entry[];
  starts(): Entry[];
  methods(): string[];
}

export function fakeCodex(dir: string): FakeCodex {
  const bin = path.join(dir, 'codex-bin');
  mkdirSync(bin);
  const program = path.join(bin, 'codex');
  const module = pathToFileURL(path.join(root, 'test', 'process', 'fake-codex.mjs')).href;
  const text = `#!${process.execPath}\nimport(${JSON.stringify(module)}).then(({ run }) => run(${JSON.stringify(bin)}));\n`;
  writeFileSync(program, text, { mode: 0o755 });
  const log = path.join(bin, 'log.jsonl');
  const entries = (): Entry[] =>
    existsSync(log)
      ? readFileSync(log, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Entry)
      : [];
  return {
    bin,
    program,
    play: (scene) => writeFileSync(path.join(bin, 'scene.json'), JSON.stringify(scene)),
    entries,
    starts: () => entries().filter(({ argv }) => argv !== undefined),
    methods: () => entries().flatMap(({ method }) => method ?? []),
  };
}
