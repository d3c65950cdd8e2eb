import { describeFlags } from './arguments.ts';
import { type Command, commands } from './commands.ts';

const others: readonly [string, string][] = [
  ['up', 'the router, and a live view of sessions, mail and receipts'],
  ['send RECIPIENT', 'send the text on stdin, or typed at the terminal'],
  ['router', 'the router alone'],
  ['router status|stop', 'ask the running router, or end it'],
  ['mcp', 'the MCP server of an agent session, over stdio'],
  ['wait', 'the listener that a host starts: prints a notice and exits 2 when mail rings'],
  ['hook EVENT', 'what a host calls: session-start'],
];

export function overview(version: string): string {
  const rows = [...others, ...Object.entries(commands).map(([name, { about }]) => [name, about] as const)];
  return [
    `postbell ${version}: durable mail between coding-agent sessions`,
    '',
    ...rows.map(([name, about]) => `  postbell ${name.padEnd(22)} ${about}`),
    '',
    'Every command answers --help.',
  ].join('\n');
}

export function commandHelp(name: string, command: Command): string {
  const field = command.stdin === 'receipts' ? 'messages' : command.stdin;
  const flags = describeFlags(command.fields, field).replace('--messages-stdin', '--receipts-stdin');
  return [`postbell ${name}: ${command.about}`, '', flags, '', `Example: ${command.example}`].join('\n');
}

export const sendHelp = [
  'postbell send RECIPIENT: send the text on stdin, or typed at the terminal (an empty line ends it)',
  '',
  '  [--project TEXT]   default: that of the current directory',
  '  [--session]        RECIPIENT is an exact session id: wait for its host to accept',
  '  [--reply-to TEXT]  the message this answers',
  '  [--json]           the whole answer',
  '',
  "Example: echo 'please review the parser' | postbell send reviewer",
].join('\n');
