// Installations that are broken in one way each, what doctor says of them, and what it advises.

import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { type Installation, installPlugin, json, type Row } from './installation.ts';
import { type Env, root } from './postbell.ts';

export interface BrokenInstallation {
  fault: string;
  make?(at: Installation): void;
  /** Variables that the fault lies in. */
  env?(at: Installation): Env;
  row: string;
  level: 'warn' | 'fail';
  says: RegExp;
  remedy: RegExp;
}

const file = (at: Installation, ...parts: string[]): string => path.join(at.dir, ...parts);

/** The plugin from a folder of its own, to be changed. @returns the plugin's folder */
function movedPlugin(at: Installation): string {
  const market = file(at, 'market');
  for (const part of ['.claude-plugin', 'plugins'])
    cpSync(path.join(root, part), path.join(market, part), { recursive: true });
  installPlugin(at, market);
  return path.join(market, 'plugins', 'claude-code');
}

function edited(name: string, edit: (text: string) => string): void {
  writeFileSync(name, edit(readFileSync(name, 'utf8')));
}

function sql(at: Installation, statements: string): void {
  const database = new BetterSqlite3(path.join(at.data, 'postbell.db'));
  database.exec(statements);
  database.close();
}

function rootPage(store: string, name: string): number {
  const database = new BetterSqlite3(store);
  const page = database
    .prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?')
    .pluck()
    .get(name) as number;
  database.close();
  return page;
}

const ofClaude: BrokenInstallation[] = [
  {
    fault: 'the folder of the plugin was deleted',
    make: (at) => {
      movedPlugin(at);
      rmSync(file(at, 'market'), { recursive: true });
    },
    row: 'install',
    level: 'warn',
    says: /looks for the plugin in \S+market, which is not there/,
    remedy: /^claude plugin marketplace add \S+ && claude plugin install postbell@postbell/,
  },
  {
    fault: 'the plugin is not installed',
    make: (at) => rmSync(path.join(at.claude, 'plugins'), { recursive: true }),
    row: 'mcp',
    level: 'warn',
    says: /knows no MCP server of Postbell/,
    remedy: /^claude plugin marketplace add \S+ && claude plugin install postbell@postbell$/,
  },
  {
    fault: 'the plugin is switched off',
    make: (at) =>
      json(path.join(at.claude, 'settings.json'), {
        enabledPlugins: { 'postbell@postbell': false },
      }),
    row: 'hooks',
    level: 'warn',
    says: /switched off/,
    remedy: /^claude plugin enable postbell@postbell$/,
  },
  {
    fault: 'the MCP server was registered alone',
    make: (at) => {
      rmSync(path.join(at.claude, 'plugins'), { recursive: true });
      json(file(at, '.claude.json'), { mcpServers: { mail: { command: 'postbell', args: ['mcp'] } } });
    },
    row: 'hooks',
    level: 'warn',
    says: /registered alone, without the hooks/,
    remedy: /^claude plugin marketplace add /,
  },
  {
    fault: 'the MCP server was registered beside the plugin',
    make: (at) =>
      json(file(at, '.claude.json'), {
        mcpServers: { mail: { command: 'node', args: [path.join(root, 'dist/postbell.cjs'), 'mcp'] } },
      }),
    row: 'mcp',
    level: 'warn',
    says: /two MCP servers for each session/,
    remedy: /^claude mcp remove --scope user mail$/,
  },
  {
    fault: 'the settings of the host are no JSON',
    make: (at) => writeFileSync(path.join(at.claude, 'settings.json'), '{"enabledPlugins": '),
    row: 'mcp',
    level: 'warn',
    says: /could not look: \S+settings\.json is no JSON object/,
    remedy: /let Claude Code read/,
  },
  {
    fault: 'the settings of the host have comments',
    make: (at) => edited(path.join(at.claude, 'settings.json'), (text) => `// mine\n${text}`),
    row: 'hooks',
    level: 'warn',
    says: /settings\.json has comments or trailing commas, with which Claude Code does not read it$/,
    remedy: /take them out of/,
  },
  {
    fault: 'all hooks are switched off',
    make: (at) =>
      edited(path.join(at.claude, 'settings.json'), (text) => text.replace('{', '{"disableAllHooks":true,')),
    row: 'hooks',
    level: 'warn',
    says: /switches all hooks off/,
    remedy: /take disableAllHooks out of/,
  },
  {
    fault: 'the manifest ends the listener too soon',
    make: (at) =>
      edited(path.join(movedPlugin(at), 'hooks', 'hooks.json'), (text) => text.replaceAll('3600', '600')),
    row: 'hooks',
    level: 'warn',
    says: /ends the listener after 600 s/,
    remedy: /timeout 3600, or the listener --renew-after-secs 500 or less/,
  },
  {
    fault: 'the launcher of the plugin was changed',
    make: (at) => edited(path.join(movedPlugin(at), 'launch.cjs'), (text) => `${text}// more\n`),
    row: 'hooks',
    level: 'warn',
    says: /differs from the shipped one in launch\.cjs$/,
    remedy: /^claude plugin update postbell@postbell/,
  },
  {
    fault: 'the plugin lacks its hooks',
    make: (at) => rmSync(path.join(movedPlugin(at), 'hooks'), { recursive: true }),
    row: 'hooks',
    level: 'warn',
    says: /lacks hooks\/hooks\.json/,
    remedy: /install it again/,
  },
  {
    fault: 'the plugin finds no program',
    make: (at) => {
      movedPlugin(at);
      rmSync(path.join(at.bin, 'postbell'));
    },
    row: 'mcp',
    level: 'warn',
    says: /finds no program to start/,
    remedy: /POSTBELL_BIN/,
  },
  {
    fault: 'the listener is switched off',
    env: () => ({ POSTBELL_LISTENER: 'off' }),
    row: 'hooks',
    level: 'warn',
    says: /POSTBELL_LISTENER=off/,
    remedy: /^unset POSTBELL_LISTENER$/,
  },
  {
    fault: 'hooks end with errors',
    make: (at) => {
      const line = {
        hook: 'prompt',
        time: new Date().toISOString(),
        host: 'claude',
        outcome: 'error',
        reason: 'inbox: uncaught store_busy',
      };
      writeFileSync(path.join(at.data, 'hook-outcomes.jsonl'), `${JSON.stringify(line)}\n`, { mode: 0o600 });
    },
    row: 'hook-activity',
    level: 'warn',
    says: /^hooks ended with errors in 7 days: prompt inbox: uncaught store_busy \(1\)$/,
    remedy: /hook-outcomes\.jsonl/,
  },
];

const ofProgram: BrokenInstallation[] = [
  {
    fault: 'the program on PATH leads nowhere',
    make: (at) => {
      rmSync(path.join(at.bin, 'postbell'));
      symlinkSync(file(at, 'gone', 'postbell.cjs'), path.join(at.bin, 'postbell'));
    },
    row: 'install',
    level: 'warn',
    says: /^PATH names \S+bin\/postbell, which is not there$/,
    remedy: /npm link\)/,
  },
  {
    fault: 'another version is on PATH',
    make: (at) => {
      const other = file(at, 'other');
      json(path.join(other, 'package.json'), { name: 'postbell', version: '0.0.9' });
      mkdirSync(path.join(other, 'dist'));
      writeFileSync(path.join(other, 'dist', 'postbell.cjs'), '', { mode: 0o755 });
      rmSync(path.join(at.bin, 'postbell'));
      symlinkSync(path.join(other, 'dist', 'postbell.cjs'), path.join(at.bin, 'postbell'));
    },
    row: 'install',
    level: 'warn',
    says: /^several versions: \S+ in \S+, 0\.0\.9 by PATH/,
    remedy: /^leave one/,
  },
  {
    fault: 'POSTBELL_BIN names what is gone',
    env: () => ({ POSTBELL_BIN: '/nowhere/dist/postbell.cjs' }),
    row: 'install',
    level: 'warn',
    says: /^POSTBELL_BIN names \/nowhere\/dist\/postbell\.cjs, which is not there$/,
    remedy: /POSTBELL_BIN/,
  },
  {
    fault: 'a login shell finds no program',
    make: (at) => rmSync(file(at, '.profile')),
    row: 'shell-cli',
    level: 'warn',
    says: /finds no postbell on its PATH/,
    remedy: /^\(cd \S+ && npm link\)$/,
  },
];

const ofData: BrokenInstallation[] = [
  {
    fault: 'the store is no database',
    make: (at) =>
      writeFileSync(path.join(at.data, 'postbell.db'), 'not a database, and long enough for it '.repeat(30)),
    row: 'store',
    level: 'fail',
    says: /^store_unreadable: /,
    remedy: /neither replaces nor renames a store/,
  },
  {
    fault: 'pages of the store are damaged',
    make: (at) => {
      const store = path.join(at.data, 'postbell.db');
      const bytes = readFileSync(store);
      const page = bytes.readUInt16BE(16);
      const first = page * (rootPage(store, 'delivery_waiting') - 1);
      writeFileSync(store, bytes.fill(0xa5, first, first + page));
    },
    row: 'store',
    level: 'fail',
    says: /^the store is damaged: /,
    remedy: /sqlite3 FILE \.recover/,
  },
  {
    fault: 'a newer release made the store',
    make: (at) => sql(at, 'PRAGMA user_version = 99'),
    row: 'store',
    level: 'fail',
    says: /schema 99/,
    remedy: /neither replaces nor renames/,
  },
  {
    fault: 'others can read the store',
    make: (at) => chmodSync(path.join(at.data, 'postbell.db'), 0o644),
    row: 'store-permissions',
    level: 'fail',
    says: /^not private to this account: \S+postbell\.db \(mode 0644\)$/,
    remedy: /^chmod go= \S+data/,
  },
  {
    fault: 'others can write the data directory',
    make: (at) => chmodSync(at.data, 0o777),
    row: 'store-permissions',
    level: 'fail',
    says: /data \(mode 0777\)/,
    remedy: /^chmod go= \S+data/,
  },
  {
    fault: 'the socket\u2019s path is too long',
    env: (at) => ({ POSTBELL_ROUTER_SOCKET: file(at, 'x'.repeat(103)) }),
    row: 'router-socket',
    level: 'fail',
    says: /of at most 103 bytes/,
    remedy: /^set POSTBELL_ROUTER_SOCKET to a shorter absolute path, or use a shorter home$/,
  },
  {
    fault: 'something else lies at the socket\u2019s path',
    make: (at) => writeFileSync(path.join(at.data, 'router-v1.sock'), ''),
    row: 'router-socket',
    level: 'fail',
    says: /^insecure: \S+router-v1\.sock is no socket of this account alone$/,
    remedy: /move what lies there/,
  },
  {
    fault: 'the quota is no number',
    env: () => ({ POSTBELL_STORAGE_QUOTA_BYTES: '5 GB' }),
    row: 'message-storage',
    level: 'warn',
    says: /is no whole number/,
    remedy: /number of bytes/,
  },
  {
    fault: 'a host config is open to others',
    make: (at) => {
      const config = path.join(at.data, 'hosts', 'claude.json');
      json(config, { version: 1, host: 'claude', principal_id: 'bob' });
      chmodSync(config, 0o644);
    },
    row: 'hosts-config',
    level: 'warn',
    says: /^insecure: \S+claude\.json has mode 0644/,
    remedy: /^chmod 600 /,
  },
  {
    fault: 'a host config names nobody',
    make: (at) => {
      const config = path.join(at.data, 'hosts', 'claude.json');
      json(config, { version: 1, host: 'claude', principal_id: '/root' });
      chmodSync(config, 0o600);
      chmodSync(path.dirname(config), 0o700);
    },
    row: 'hosts-config',
    level: 'warn',
    says: /^malformed: \S+claude\.json: the host config names nobody/,
    remedy: /^mend or remove /,
  },
];

export const brokenInstallations: readonly BrokenInstallation[] = [...ofClaude, ...ofProgram, ...ofData];

/** For a page: what was broken, the row that says it, and what it says. */
export function faultTable(told: readonly { fault: string; row: Row }[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const lines = told.map(
    ({ fault, row }) =>
      `| ${cell(fault)} | \`${row.id}\` ${row.level} | ${cell(row.text)} | ${cell(row.hint ?? '')} |`,
  );
  return ['| fault | row | what doctor says | remedy |', '|---|---|---|---|', ...lines].join('\n');
}
