// What each command is for, its flags, and one example.

import { configuredHosts } from '../../protocol/host-config.ts';
import { setupFields } from './agent.ts';
import { describeFlags, helpRow } from './arguments.ts';
import { type Command, commands } from './commands.ts';
import { peerVerbs } from './peer-verbs.ts';

interface Manual {
  words: string;
  about: string;
  flags: readonly (readonly [string, string])[];
  example: string;
}

/** Commands that do not answer with one JSON line. */
const manuals: Readonly<Record<string, Manual>> = {
  up: {
    words: 'up',
    about: 'the router, and a live view of sessions, mail and receipts',
    flags: [],
    example: 'postbell up',
  },
  demo: {
    words: 'demo',
    about: 'the story of one message in a throw-away home, with two processes killed in the middle',
    flags: [],
    example: 'postbell demo',
  },
  doctor: {
    words: 'doctor',
    about: 'what is wrong with this installation, one line each; exit 1 where something fails',
    flags: [
      ['[--json]', 'the verdict and the rows as JSON'],
      ['[--probe-relays]', 'asks the relays of POSTBELL_RELAYS whether they answer'],
      ['[--fix]', 'then mend what is missing, asking before each step'],
      ['[--yes]', 'with --fix: without asking'],
    ],
    example: 'postbell doctor',
  },
  send: {
    words: 'send RECIPIENT',
    about: 'send the text on stdin, or typed at the terminal (an empty line ends it)',
    flags: [
      ['[--project TEXT]', 'default: that of the current directory'],
      ['[--session]', 'RECIPIENT is an exact session id: wait up to 12 s for its host to accept, or fail'],
      ['[--reply-to TEXT]', 'the message this answers'],
      ['[--peer TEXT]', 'the machine of a peer that RECIPIENT is on'],
      ['[--wait]', 'then wait up to 5 minutes for an answer to it'],
      ['[--json]', 'the whole answer, or a failure as JSON'],
    ],
    example: "echo 'please review the parser' | postbell send reviewer",
  },
  read: {
    words: 'read [NAME]',
    about: 'the mail that waits for you, as text; that of NAME is shown and left waiting',
    flags: [
      ['[--project TEXT]', 'default: that of the current directory'],
      ['[--json]', 'a failure as JSON'],
    ],
    example: 'postbell read',
  },
  router: {
    words: 'router [status|stop]',
    about: 'the router alone, in the foreground; status asks the running one, stop ends it',
    flags: [],
    example: 'postbell router status',
  },
  relay: {
    words: 'relay',
    about: 'keeps sealed mail for other machines until its readers have it; in the foreground',
    flags: [
      ['[--listen HOST:PORT]', 'default 127.0.0.1:7420'],
      [
        '[--public-url ORIGIN]',
        'what its clients call it; default: the host of the first request that is signed',
      ],
      ['[--store sqlite:PATH]', 'default: relay.db in the data directory'],
      ['[--insecure-http]', 'plain HTTP on an address that other machines reach'],
    ],
    example: 'postbell relay --public-url https://relay.example',
  },
  mcp: {
    words: 'mcp',
    about: 'the MCP server of one agent session, over stdio',
    flags: [
      ['[--session ID]', 'the session; default: the one the host names'],
      ['[--no-register]', 'serve the tools without making the session reachable'],
    ],
    example: 'postbell mcp',
  },
  wait: {
    words: 'wait',
    about: 'the listener that a host starts: prints a notice and exits 2 when mail rings',
    flags: [
      ['[--session ID]', 'the session; default: the one in the hook\u2019s input, else main'],
      ['[--renew-after-secs N]', 'ask to be started again after so long (1 to 3000, default 3000)'],
    ],
    example: 'postbell wait --session s1',
  },
  agent: {
    words: 'agent setup HOST',
    about: `write the config of a host (${configuredHosts.join(', ')}); registers nothing`,
    flags: [
      ['--principal TEXT', setupFields.principal.about],
      ['[--workspace DIR]', setupFields.workspace.about],
      ['[--command TEXT]', setupFields.command.about],
      ['[--work-summary TEXT]', setupFields.work_summary.about],
      ['[--project TEXT]', setupFields.project.about],
      ['[--model TEXT]', setupFields.model.about],
      ['[--replace]', 'write anew what is there'],
      ['[--json]', 'the answer, or a failure, as JSON'],
    ],
    example: "postbell agent setup acp --principal critic --command 'my-agent --acp'",
  },
  host: {
    words: 'host claude|codex|acp',
    about:
      'claude: the channel of a session, as a server that Claude Code starts; codex, acp (any agent, gemini too): a session of its own, which it starts and rings',
    flags: [['--config FILE', 'what agent setup wrote']],
    example: 'postbell host acp --config ~/.local/state/postbell/hosts/gemini.json',
  },
  claude: {
    words: 'claude [ARGUMENTS]',
    about: 'Claude Code with the plugin as its channel; all arguments are Claude Code\u2019s',
    flags: [],
    example: 'postbell claude --resume',
  },
  identity: {
    words: 'identity show|create',
    about: 'who this account is to other accounts: its key, fingerprint and address',
    flags: [
      ['show [--new-door]', 'with a new door: addresses given before lead nowhere from then on'],
      ['create [--force]', 'make the key; --force in the place of one, which ends all pairings'],
      ['[--json]', 'the answer, or a failure, as JSON'],
    ],
    example: 'postbell identity show',
  },
  peer: {
    words: 'peer VERB',
    about: 'whom this account trusts on other machines; what changes that is typed by a person at a terminal',
    flags: [
      ...Object.values(peerVerbs).map(({ words, about }) => [words, about] as const),
      ['[--json]', 'the answer, or a failure, as JSON'],
    ],
    example: 'postbell peer pair postbell:… --as bob',
  },
  hook: {
    words: 'hook EVENT',
    about: 'what the plugin of a host calls: session-start, prompt, stop-gate, codex-session',
    flags: [],
    example: `echo '{"session_id":"s1","source":"startup"}' | postbell hook session-start`,
  },
};

export function overview(version: string): string {
  const rows = [
    ...Object.values(manuals).map(({ words, about }) => [words, about] as const),
    ...Object.entries(commands).map(([words, { about }]) => [words, about] as const),
  ];
  return [
    `postbell ${version}: durable mail between coding-agent sessions`,
    '',
    ...rows.map(([words, about]) => helpRow(`postbell ${words}`, about)),
    '',
    'Every command answers --help.',
  ].join('\n');
}

/** The help of the command that the words begin with; undefined where there is none. */
export function helpFor(first: string, second: string): string | undefined {
  const command = commands[`${first} ${second}`];
  if (command !== undefined) return commandHelp(`${first} ${second}`, command);
  const manual = Object.hasOwn(manuals, first) ? manuals[first] : undefined;
  if (manual === undefined) return groupHelp(first);
  const flags = manual.flags.map(([flag, about]) => helpRow(flag, about));
  return page(manual.words, manual.about, flags.join('\n'), manual.example);
}

/** The commands that begin with this word. */
function groupHelp(first: string): string | undefined {
  const rows = Object.entries(commands).filter(([name]) => name.startsWith(`${first} `));
  return rows.length === 0
    ? undefined
    : rows.map(([name, { about }]) => helpRow(`postbell ${name}`, about)).join('\n');
}

function commandHelp(name: string, command: Command): string {
  const { [command.word ?? '']: word, ...flags } = command.fields;
  const words = word?.kind === 'choice' ? `${name} ${word.choices.join('|')}` : name;
  return page(words, command.about, describeFlags(flags, command.stdin, command.flags), command.example);
}

function page(words: string, about: string, flags: string, example: string): string {
  return [
    `postbell ${words}: ${about}`,
    '',
    ...(flags === '' ? [] : [flags, '']),
    `Example: ${example}`,
  ].join('\n');
}
