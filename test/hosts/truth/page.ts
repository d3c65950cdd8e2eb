// docs/truth-table.md: read, compared, and written where UPDATE_DOCS is set.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { hosts as pinned } from '../../../tools/hosts.mjs';
import { root } from '../../process/postbell.ts';

const file = path.join(root, 'docs', 'truth-table.md');

export const columns = {
  claude: `Claude Code ${pinned['claude-code'].versions[0]}, listener`,
  queue: `Codex ${pinned.codex.versions[0]}, queue`,
  managed: `Codex ${pinned.codex.versions[0]}, managed app-server`,
  acp: 'ACP, scripted agent',
} as const;
export type Column = keyof typeof columns;

/** Every fault, in the order of the page. */
export const faults = {
  none: 'nothing is wrong',
  ignored: 'nothing is wrong, and the model leaves the notice alone',
  killed: 'its host was killed',
  missing: 'hooks: their program is missing',
  failing: 'hooks: they exit with 1',
  garbage: 'hooks: their program is garbage',
  untrusted: 'hooks: not trusted, or switched off by the person',
  toolless: 'the model may not use our tools',
  listener: 'the listener was killed',
  interrupted: 'a turn was interrupted, then mail came',
  closed: 'the session was closed',
  daemon: 'no daemon beside it',
  cleared: '`/clear`',
  resumed: 'resumed, or started again',
  forked: 'forked: mail for the session it was forked from',
  compacted: 'compacted',
  busy: 'busy for long',
  midPrompt: 'its host dies in mid-prompt',
  router: 'the router was killed; a new one runs',
  outdated: 'the router was of an older version',
  companion: 'the process that holds its registration was killed',
  workspace: 'it runs in another workspace',
  locked: 'the store is locked',
} as const;
export type FaultName = keyof typeof faults;

const legend = `# What senders are told, and what models see

Measured: each cell is one fault, made in a running host that talks to a scripted model, and one message sent into it. The
tests of \`test/hosts/truth/\` hold every cell against what they find, and write this page where \`UPDATE_DOCS=1\` is set. A
model that is rung fetches its mail and acknowledges it, but for the row that says otherwise.

A cell reads **answer / presence / card / model**:

- **answer** to a send to the exact session: \`accepted\` by its host (not read), else why it was refused; a refused message
  is kept, and goes to the session's name instead. \`–\`: no session could be named.
- **presence**: what the sender was told of the recipient: \`recipient_presence\`, of the second send where the first was
  refused.
- **card**: the session in \`discover --detail\`: \`live\` (it has a bell), \`deaf\`, \`absent\`, or \`not known\` (no router answers).
- **model**: the most that it saw: \`nothing\`, a \`line\` of a hook, a \`notice\`, the \`body\`, or \`took it in\` (its own call).

Beside that each cell holds this: an answer \`accepted\` has its \`host_accept\`, and a card that was live; intake and ack are
there if the model called the tool, and only then; a body reaches those alone who fetched it; presence and cards agree; a
host dead for ten seconds is nowhere live. A cell in brackets cannot exist: it says why, and does not count.
`;

type Cells = Record<string, Partial<Record<Column, string>>>;

function read(): Cells {
  const cells: Cells = {};
  if (!existsSync(file)) return cells;
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const parts = line.split('|').slice(1, -1);
    const [fault, ...rest] = parts.map((part) => part.trim());
    const name = Object.entries(faults).find(([, title]) => title === fault)?.[0];
    if (name === undefined) continue;
    cells[name] = Object.fromEntries(Object.keys(columns).map((column, nth) => [column, rest[nth] ?? '']));
  }
  return cells;
}

function write(cells: Cells): void {
  const names = Object.keys(columns) as Column[];
  const row = (parts: readonly string[]): string => `| ${parts.join(' | ')} |`;
  const lines = Object.entries(faults).map(([name, title]) =>
    row([title, ...names.map((column) => cells[name]?.[column] ?? '')]),
  );
  const all = Object.values(cells).flatMap((one) => Object.values(one));
  const counted = all.filter((cell) => cell !== '' && !cell.startsWith('(')).length;
  const head = [row(['fault', ...Object.values(columns)]), row(['---', ...names.map(() => '---')])];
  writeFileSync(file, [legend, `${counted} cells count.`, '', ...head, ...lines, ''].join('\n'));
}

/** The column of one host: its cells are compared with the page, or written to it. */
export function columnOf(column: Column) {
  const set = (fault: FaultName, found: string): void => {
    const cells = read();
    if (process.env.UPDATE_DOCS !== undefined) {
      write({ ...cells, [fault]: { ...cells[fault], [column]: found } });
      return;
    }
    expect(cells[fault]?.[column]).toBe(found);
  };
  return {
    /** One cell. */
    cell: (
      fault: FaultName,
      expected: string,
      run: (expected: string) => Promise<string>,
      ms = 60_000,
    ): void => {
      it(`${faults[fault]}: ${expected}`, async () => set(fault, await run(expected)), ms);
    },
    /** Cells that cannot exist here. */
    absent: (reasons: Partial<Record<FaultName, string>>): void => {
      it('what cannot be is said with its reason', () => {
        for (const [fault, why] of Object.entries(reasons)) set(fault as FaultName, `(${why})`);
      });
    },
  };
}
