// Installations of Codex that are broken in one way each, what doctor says of them, and what it advises.

import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { type CodexInstallation, say } from './codex-installation.ts';
import { json } from './installation.ts';
import type { Env } from './postbell.ts';

export interface BrokenCodex {
  fault: string;
  make?(at: CodexInstallation): void;
  env?(at: CodexInstallation): Env;
  row: string;
  level: 'warn' | 'fail' | 'info';
  says: RegExp;
  remedy: RegExp;
}

const edited = (file: string, edit: (text: string) => string): void =>
  writeFileSync(file, edit(readFileSync(file, 'utf8')));

const installs = /^codex plugin marketplace add \S+ && codex plugin add postbell@postbell$/;
const adds = /^codex plugin add postbell@postbell$/;
const reviews = /^start codex in a terminal and review the hooks/;
const firstPart = `
[marketplaces.postbell]`;

/** Without the plugin, as before it was installed. */
function unwired({ config, codex }: CodexInstallation): void {
  edited(config, (text) => text.slice(0, text.indexOf(firstPart)));
  rmSync(path.join(codex, 'plugins'), { recursive: true });
}

const byHand = '\n[mcp_servers.mail]\ncommand = "postbell"\nargs = ["mcp"]\n';

/** A message whose host accepted it, and what the router wrote of its start. */
function releaseFact({ data }: CodexInstallation): void {
  const at = new Date().toISOString();
  const database = new BetterSqlite3(path.join(data, 'postbell.db'));
  database.exec(`
    INSERT INTO message (seq, message_id, project, sender, content_type, privacy, created_at, transport, source_host,
      payload, payload_sha256) VALUES (1, 'm1', 'p', 'a', 'text/plain', 'x', '${at}', 'cli', 'cli', 'x', 'x');
    INSERT INTO delivery (seq, delivery_id, message_id, project, recipient, target_kind)
      VALUES (1, 'd1', 'm1', 'p', 'b', 'principal');
    INSERT INTO connection (connection_id, project, session_id, generation, principal_id, adapter_kind, bell,
      router_instance, lease_expires_at_ms, connected_at, disconnected_at)
      VALUES ('c1', 'p', 'thread-1', 1, 'b', 'codex-queue', 'codex-queue', 'r', 0, '${at}', '${at}');
    INSERT INTO attempt (attempt_id, delivery_id, attempt_number, connection_id, router_instance, state, started_at)
      VALUES ('a1', 'd1', 1, 'c1', 'r', 'adapter_returned', '${at}');
    INSERT INTO host_accept (host_accept_id, delivery_id, attempt_id, content, adapter_kind, receipt, accepted_at)
      VALUES ('h1', 'd1', 'a1', 'notice', 'codex-queue', '{}', '${at}');
    INSERT INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, detail, recorded_at)
      VALUES ('r1', 'd1', 'host_activation', 'postbell-router', 'unsupported', 'postbell-router',
        '{"reason":"no_daemon"}', '${at}');
  `);
  database.close();
}

function hostConfig({ data }: CodexInstallation, host: string, more: object, mode = 0o600): void {
  const file = path.join(data, 'hosts', `${host}.json`);
  json(file, { version: 1, host, principal_id: 'bob', ...more });
  chmodSync(path.dirname(file), 0o700);
  chmodSync(file, mode);
}

const ofWiring: BrokenCodex[] = [
  {
    fault: 'the plugin is not installed in Codex',
    make: unwired,
    row: 'mcp',
    level: 'warn',
    says: /^Codex knows no MCP server of Postbell$/,
    remedy: installs,
  },
  {
    fault: 'the folder that Codex took the plugin from was deleted',
    make: ({ config }) =>
      edited(config, (text) => text.replace(/source = .*/, 'source = "/nowhere/postbell"')),
    row: 'install',
    level: 'warn',
    says: /^Codex looks for the plugin in \/nowhere\/postbell, which is not there$/,
    remedy:
      /^codex plugin marketplace remove postbell && codex plugin marketplace add \S+ && codex plugin add postbell@postbell$/,
  },
  {
    fault: 'the plugin is switched off in Codex',
    make: ({ config }) => edited(config, (text) => text.replace('enabled = true', 'enabled = false')),
    row: 'hooks',
    level: 'warn',
    says: /^the Codex plugin postbell@postbell is switched off, and its hooks with it$/,
    remedy: /\/plugins/,
  },
  {
    fault: 'the MCP server was registered alone in Codex',
    make: (at) => {
      unwired(at);
      edited(at.config, (text) => text + byHand);
    },
    row: 'hooks',
    level: 'warn',
    says: /^Codex: the MCP server is registered alone, without the hooks/,
    remedy: installs,
  },
  {
    fault: 'the MCP server was registered in Codex beside the plugin',
    make: ({ config }) => edited(config, (text) => text + byHand),
    row: 'mcp',
    level: 'warn',
    says: /^two MCP servers for each Codex thread: the plugin\u2019s, and "mail"/,
    remedy: /^codex mcp remove mail$/,
  },
  {
    fault: 'the settings of Codex are no TOML',
    make: ({ config }) => edited(config, (text) => `${text}[plugins`),
    row: 'mcp',
    level: 'warn',
    says: /^could not look: \S+config\.toml is no TOML$/,
    remedy: /^mend \S+config\.toml$/,
  },
  {
    fault: 'the settings of Codex switch hooks off',
    make: ({ config }) => edited(config, (text) => `${text}[features]\nhooks = false\n`),
    row: 'hooks',
    level: 'warn',
    says: /switch all hooks off \(features\.hooks\)$/,
    remedy: /^take hooks = false out of \S+config\.toml$/,
  },
  {
    fault: 'Codex lost its copy of the plugin',
    make: ({ codex }) => rmSync(path.join(codex, 'plugins'), { recursive: true }),
    row: 'mcp',
    level: 'warn',
    says: /^Codex has no copy of the plugin postbell@postbell in /,
    remedy: adds,
  },
  {
    fault: 'the launcher of the plugin was changed in Codex\u2019s copy',
    make: ({ copy }) => edited(path.join(copy, 'launch.cjs'), (text) => `${text}// more\n`),
    row: 'hooks',
    level: 'warn',
    says: /differs from the shipped one in launch\.cjs$/,
    remedy: adds,
  },
  {
    fault: 'Codex\u2019s copy of the plugin lacks its skill',
    make: ({ copy }) => rmSync(path.join(copy, 'skills'), { recursive: true }),
    row: 'hooks',
    level: 'warn',
    says: /lacks skills\/postbell\/SKILL\.md$/,
    remedy: adds,
  },
  {
    fault: 'the plugin in Codex finds no program',
    make: (at) => {
      for (const name of readdirSync(at.bin)) if (name === 'postbell') rmSync(path.join(at.bin, name));
      const config = readFileSync(at.config, 'utf8');
      mkdirSync(path.join(at.codex, 'elsewhere'));
      writeFileSync(at.config, config.replace(/^source = .*$/m, `source = "${at.codex}/elsewhere"`));
    },
    row: 'mcp',
    level: 'warn',
    says: /^the launcher of the plugin in \S+ finds no program to start$/,
    remedy: /POSTBELL_BIN/,
  },
];

const ofTrust: BrokenCodex[] = [
  {
    fault: 'nobody has reviewed the hooks in Codex',
    make: (at) => say(at, { trust: 'untrusted' }),
    row: 'hooks',
    level: 'warn',
    says: /^Codex skips hooks of the plugin without a word, untrusted: (\d+) of \1 \(.*; nobody has reviewed them yet$/,
    remedy: reviews,
  },
  {
    fault: 'the hooks changed since they were reviewed in Codex',
    make: (at) => say(at, { trust: 'modified' }),
    row: 'hooks',
    level: 'warn',
    says: /, modified: (\d+) of \1 \(.*; they changed since they were reviewed$/,
    remedy: reviews,
  },
  {
    fault: 'a hook is switched off in Codex',
    make: (at) => say(at, { off: 1 }),
    row: 'hooks',
    level: 'warn',
    says: /^Codex has hooks of the plugin switched off: 1 of \d+ \("\w+"\)$/,
    remedy: /\/hooks/,
  },
  {
    fault: 'Codex calls trust what nobody knows',
    make: (at) => say(at, { trust: 'half' }),
    row: 'hooks',
    level: 'warn',
    says: /^could not look: Codex calls the trust of hooks "half"/,
    remedy: reviews,
  },
  {
    fault: 'Codex lists fewer hooks than the plugin has',
    make: (at) => say(at, { lacking: 1 }),
    row: 'hooks',
    level: 'warn',
    says: /^Codex lists \d+ of the \d+ hooks of the plugin$/,
    remedy: /0\.171\.0/,
  },
  {
    fault: 'Codex finds an error in hooks',
    make: (at) => say(at, { how: 'finds an error' }),
    row: 'hooks',
    level: 'warn',
    says: /^Codex finds 1 error in hooks$/,
    remedy: reviews,
  },
  {
    fault: 'Codex does not know the question for trust',
    make: (at) => say(at, { how: 'knows no such method' }),
    row: 'hooks',
    level: 'warn',
    says: /^could not look: which hooks are trusted: Codex does not say \(it knows no such question\)$/,
    remedy: reviews,
  },
  {
    fault: 'Codex ends when it is asked',
    make: (at) => say(at, { how: 'ends' }),
    row: 'hooks',
    level: 'warn',
    says: /^could not look: which hooks are trusted: codex app-server ended with 3$/,
    remedy: reviews,
  },
  {
    fault: 'no codex is on PATH to be asked',
    make: ({ bin }) => rmSync(path.join(bin, 'codex')),
    row: 'hooks',
    level: 'warn',
    says: /^could not look: which hooks are trusted: no codex on PATH to ask$/,
    remedy: reviews,
  },
  {
    fault: 'Codex is too old for a queue',
    make: (at) => say(at, { version: '0.158.9' }),
    row: 'mcp',
    level: 'warn',
    says: /^Codex 0\.158\.9 has no queue .*0\.159\.0\)$/,
    remedy: /^install Codex 0\.171\.0 or newer$/,
  },
];

const ofMail: BrokenCodex[] = [
  {
    fault: 'no app-server answered that could start a queued notice',
    make: releaseFact,
    row: 'codex-queue-release',
    level: 'warn',
    says: /^no app-server answered that could start queued notices: "thread-1";/,
    remedy: /--no-daemon/,
  },
  {
    fault: 'the workspace of an override is gone',
    make: (at) => hostConfig(at, 'codex-session', { workspace: path.join(at.dir, 'gone') }),
    row: 'hosts-config',
    level: 'warn',
    says: /^stale: \S+codex-session\.json names the workspace \S+gone, which is no directory that is there$/,
    remedy: /^postbell agent setup codex-session --principal \S+ --replace,/,
  },
  {
    fault: 'the agent of an ACP config is not installed',
    make: (at) => hostConfig(at, 'acp', { workspace: at.project, command: ['no-such-agent', '--acp'] }),
    row: 'hosts-config',
    level: 'warn',
    says: /^stale: \S+acp\.json names the program no-such-agent, which is not on PATH$/,
    remedy: /^postbell agent setup acp --principal \S+ --command 'no-such-agent --acp' --replace,/,
  },
  {
    fault: 'an override is open to others',
    make: (at) => hostConfig(at, 'codex-session', { workspace: at.project }, 0o644),
    row: 'hosts-config',
    level: 'warn',
    says: /^insecure: \S+codex-session\.json has mode 0644/,
    remedy: /^chmod 600 /,
  },
  {
    fault: 'the config of Gemini names no command',
    make: (at) => {
      mkdirSync(path.join(at.data, 'hosts'), { recursive: true });
      hostConfig(at, 'gemini', { workspace: at.project });
    },
    row: 'hosts-config',
    level: 'warn',
    says: /^malformed: \S+gemini\.json: the host config has no command$/,
    remedy: /^mend or remove /,
  },
];

export const brokenCodex: readonly BrokenCodex[] = [...ofWiring, ...ofTrust, ...ofMail];
