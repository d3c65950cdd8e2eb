// What Codex knows of Postbell, by its own files as they are (measured on 0.171.0). They are read, never written: what is to
// change there, the host's own commands change. It runs a plugin from the copy that it made of it.

import path from 'node:path';
import type {
  CodexFacts,
  CodexPlugin,
  CodexPluginFile,
  Looked,
  PluginTexts,
  Registered,
} from '../../ports/inspection.ts';
import { isTable, readToml, type Toml, type TomlTable } from './toml.ts';

export const codexPluginFiles: readonly CodexPluginFile[] = [
  '.codex-plugin/plugin.json',
  '.mcp.json',
  'hooks/hooks.json',
  'launch.cjs',
  'skills/postbell/SKILL.md',
];

export interface LookingAtCodex {
  /** `CODEX_HOME`, else the one that it makes in the account's home. */
  directory: string;
  /** `codex` on PATH. */
  program: string | undefined;
  read(file: string): Looked<string>;
  namesIn(directory: string): Looked<string[]>;
  isThere(file: string): boolean;
  /** What the launcher in that folder would start, of a plugin that was taken from `source`. */
  launches(root: string, source: string | undefined): string | undefined;
}

/** Without what only a running Codex can say. */
export function codexFacts(looking: LookingAtCodex): Omit<CodexFacts, 'trust'> {
  const { directory, program, read, isThere } = looking;
  const file = path.join(directory, 'config.toml');
  const text = read(file);
  const config = text.state === 'found' ? readToml(text.value) : newTable;
  const why = text.state === 'closed' ? text.why : 'is no TOML';
  const settings = config ?? newTable;
  const market = tableIn(tableIn(settings, 'marketplaces'), 'postbell');
  const source = textIn(market, 'source');
  const plugin = pluginIn(looking, tableIn(settings, 'plugins'), source);
  return {
    directory,
    present: program !== undefined || isThere(directory),
    ...(program !== undefined && { program }),
    unread: text.state === 'closed' || config === undefined ? [{ path: file, why }] : [],
    ...(plugin !== undefined && { plugin }),
    ...(market !== newTable && {
      marketplace: marketplaceOf(source, textIn(market, 'source_type'), isThere),
    }),
    servers: serversIn(tableIn(settings, 'mcp_servers')),
    hooksOff: tableIn(settings, 'features').hooks === false,
  };
}

const newTable: TomlTable = {};

function tableIn(table: TomlTable, name: string): TomlTable {
  const value = table[name];
  return isTable(value) ? value : newTable;
}

function textIn(table: TomlTable, name: string): string | undefined {
  const value = table[name];
  return typeof value === 'string' ? value : undefined;
}

/** Only a local one can be looked at. */
function marketplaceOf(
  source: string | undefined,
  type: string | undefined,
  isThere: LookingAtCodex['isThere'],
): NonNullable<CodexFacts['marketplace']> {
  return source === undefined || type !== 'local'
    ? { missing: false }
    : { path: source, missing: !isThere(source) };
}

const serversIn = (servers: TomlTable): Registered[] =>
  Object.entries(servers).map(([name, server]) => {
    const { command, args }: { command?: Toml; args?: Toml } = isTable(server) ? server : {};
    return { name, command, args };
  });

/** The installed one; of several, the one that is switched on. */
function pluginIn(
  looking: LookingAtCodex,
  plugins: TomlTable,
  source: string | undefined,
): CodexPlugin | undefined {
  const found = Object.entries(plugins).flatMap(([id, plugin]) =>
    id.startsWith('postbell@') && isTable(plugin) ? [{ id, enabled: plugin.enabled !== false }] : [],
  );
  const chosen = found.find(({ enabled }) => enabled) ?? found[0];
  if (chosen === undefined) return undefined;
  const market = chosen.id.slice('postbell@'.length);
  const copies = path.join(looking.directory, 'plugins', 'cache', market, 'postbell');
  const names = looking.namesIn(copies);
  const version = names.state === 'found' ? names.value.at(-1) : undefined;
  if (version === undefined)
    return { ...chosen, copies, ...(names.state === 'closed' && { unread: `${copies} ${names.why}` }) };
  const root = path.join(copies, version);
  const read = (file: CodexPluginFile) => [file, looking.read(path.join(root, file))] as const;
  const launches = looking.launches(root, source);
  return {
    ...chosen,
    copies,
    copy: {
      version,
      root,
      texts: Object.fromEntries(codexPluginFiles.map(read)) as PluginTexts<CodexPluginFile>,
    },
    ...(launches !== undefined && { launches }),
  };
}
