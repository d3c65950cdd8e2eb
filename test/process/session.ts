// A session's MCP server as a host starts it, driven by the official client.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Json } from '../../src/protocol/json.ts';
import { inertValue } from '../../src/protocol/untrusted.ts';
import type { Home } from './home.ts';
import { answer, type Env, program, startOf } from './postbell.ts';

/** What a session needs of a home. */
export type Where = Pick<Home, 'dir' | 'project' | 'env' | 'atEnd'>;

export interface Session {
  client: Client;
  pid: number;
  stderr(): string;
  /** The answer of a tool, and whether it is an error. */
  call(tool: string, input: object): Promise<{ isError: boolean; data: Record<string, unknown> }>;
  close(): Promise<void>;
}

/**
 * Starts `postbell mcp` for this session in the home's project, or another server of the product; it ends with the home at the
 * latest.
 */
export function openSession(
  home: Home,
  more: Env = {},
  words: string[] = [],
  installed = program,
  server: string[] = ['mcp'],
): Promise<Session> {
  return connectSession(home, more, { start: [process.execPath, [installed, ...server, ...words]] });
}

/** As `openSession`, but a client that names itself or its workspace roots, or a server without root's power over modes. */
export function openOther(
  home: Where,
  more: Env,
  other: {
    words?: string[];
    roots?: readonly string[] | 'untold';
    plain?: boolean;
    name?: string;
    person?: Person;
  },
): Promise<Session> {
  const { words = [], plain = false, ...client } = other;
  return connectSession(home, more, { start: startOf(['mcp', ...words], plain), ...client });
}

/** As that, of whatever program starts the server. */
export const openStarted = (
  home: Home,
  more: Env,
  start: [string, string[]],
  name: string,
): Promise<Session> => connectSession(home, more, { start, name });

/** At the client: what is typed where the server has him asked; undefined where he declines. */
export type Person = (message: string, field: string) => string | undefined;

async function connectSession(
  home: Where,
  more: Env,
  {
    start,
    roots,
    name = 'test-host',
    person,
  }: { start: [string, string[]]; roots?: readonly string[] | 'untold'; name?: string; person?: Person },
): Promise<Session> {
  const [file, args] = start;
  const env = { ...home.env, CLAUDE_PROJECT_DIR: home.project, ...more };
  const transport = new StdioClientTransport({ command: file, args, env, cwd: home.dir, stderr: 'pipe' });
  let stderr = '';
  transport.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const client = new Client(
    { name, version: '1' },
    { capabilities: { ...(roots && { roots: {} }), ...(person && { elicitation: {} }) } },
  );
  if (person !== undefined)
    client.setRequestHandler('elicitation/create', ({ params }) => {
      const { properties } = (params as { requestedSchema: { properties: object } }).requestedSchema;
      const [field] = Object.keys(properties) as [string];
      const typed = person(params.message, field);
      return typed === undefined ? { action: 'decline' } : { action: 'accept', content: { [field]: typed } };
    });
  if (roots !== undefined)
    client.setRequestHandler('roots/list', () => {
      if (roots === 'untold') throw new Error('not today');
      return { roots: roots.map((uri) => ({ uri })) };
    });
  home.atEnd(() => client.close().catch(() => {}));
  await client.connect(transport);
  return {
    client,
    pid: transport.pid as number,
    stderr: () => stderr,
    call: async (name, input) => {
      const result = await client.callTool({ name, arguments: { ...input } });
      const [item] = result.content as { type: string; text: string }[];
      const data = JSON.parse(item?.text as string) as Record<string, unknown>;
      if (JSON.stringify(result.structuredContent) !== JSON.stringify(inertValue(data as Json)))
        throw new Error('text and structured content differ');
      return { isError: result.isError === true, data };
    },
    close: () => client.close(),
  };
}

/** The cards of the project, once `count` sessions of it are live. */
export async function liveCards(
  home: Home,
  project: string,
  count: number,
): Promise<Record<string, unknown>[]> {
  for (let tries = 0; ; tries += 1) {
    const found = await answer(home.env, home.project, ['message', 'discover', '--project', project]).catch(
      () => ({ cards: [] }),
    );
    const cards = found.cards as Record<string, unknown>[];
    if (cards.length === count) return cards;
    if (tries > 60) throw new Error(`${cards.length} live sessions, not ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
