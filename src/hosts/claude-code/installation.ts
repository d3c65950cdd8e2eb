// What Claude Code knows of Postbell, by its own files as they are (measured on 2.1.332). They are read, never written:
// what is to change there, the host's own commands change.

import path from 'node:path';
import type { ClaudeFacts, Looked, PluginFacts, PluginFile, Registered } from '../../ports/inspection.ts';
import { asText, isObject } from '../../protocol/json.ts';
import { readLenientJson } from '../../protocol/lenient-json.ts';

export const pluginFiles: readonly PluginFile[] = [
  '.claude-plugin/plugin.json',
  '.mcp.json',
  'hooks/hooks.json',
  'launch.cjs',
];

export interface Looking {
  /** Its value; blank counts as unset. */
  configDirectory: string | undefined;
  home: string;
  /** Where doctor was started: its settings count, too. */
  project: string;
  /** `claude` on PATH, and the file that it is. */
  program: string | undefined;
  programFile: string | undefined;
  read(file: string): Looked<string>;
  isThere(file: string): boolean;
  /** What the launcher in that folder would start. */
  launches(root: string): string | undefined;
}

type Json = Readonly<Record<string, unknown>>;

export function claudeFacts(looking: Looking): ClaudeFacts {
  const { configDirectory, home, project, program, isThere } = looking;
  const directory = configDirectory ?? path.join(home, '.claude');
  const files = jsonReader(looking);
  const settings = settingsFiles(directory, project).map((file) => ({ file, json: files.read(file) }));
  const state = files.read(path.join(configDirectory ?? home, '.claude.json'));
  const markets = files.read(path.join(directory, 'plugins', 'known_marketplaces.json'));
  const installed = objectIn(
    files.read(path.join(directory, 'plugins', 'installed_plugins.json')),
    'plugins',
  );
  const market = marketplace(markets, isThere);
  const version = programVersion(looking);
  const plugin = pluginFacts(looking, files, { installed, markets, enabled: enabledIn(settings) });
  return {
    directory,
    present: program !== undefined || isThere(directory),
    ...(program !== undefined && { program }),
    ...(version !== undefined && { version }),
    unread: files.unread,
    unstrict: files.unstrict,
    ...(plugin !== undefined && { plugin }),
    ...(market !== undefined && { marketplace: market }),
    servers: servers(state),
    hooksOffIn: settings.flatMap(({ file, json }) => (json.disableAllHooks === true ? [file] : [])),
    environment: Object.assign({}, ...settings.map(({ json }) => texts(objectIn(json, 'env')))),
  };
}

/** The weakest first. */
const settingsFiles = (directory: string, project: string): string[] => [
  path.join(directory, 'settings.json'),
  path.join(project, '.claude', 'settings.json'),
  path.join(project, '.claude', 'settings.local.json'),
];

interface JsonReader {
  unread: { path: string; why: string }[];
  unstrict: string[];
  /** Empty where there is none, or none that can be read. */
  read(file: string): Json;
}

function jsonReader({ read }: Pick<Looking, 'read'>): JsonReader {
  const unread: JsonReader['unread'] = [];
  const unstrict: string[] = [];
  return {
    unread,
    unstrict,
    read: (file) => {
      const text = read(file);
      if (text.state === 'missing') return {};
      if (text.state === 'closed') {
        unread.push({ path: file, why: text.why });
        return {};
      }
      const json = readLenientJson(text.value);
      if (json === undefined || !isObject(json.value)) {
        unread.push({ path: file, why: 'is no JSON object' });
        return {};
      }
      if (!json.strict) unstrict.push(file);
      return json.value;
    },
  };
}

/** Packages of the host, one of them for each system. */
const packageName = /^@anthropic-ai\/claude-code(-|$)/;

/** Without running it: its own installer names the file by the version; a package says it in its manifest. */
function programVersion({ programFile, read }: Looking): string | undefined {
  if (programFile === undefined) return undefined;
  const [, installed] = /\/claude\/versions\/(\d+\.\d+\.\d+)$/.exec(programFile) ?? [];
  if (installed !== undefined) return installed;
  const folder = path.dirname(programFile);
  for (const at of [folder, path.dirname(folder)]) {
    const text = read(path.join(at, 'package.json'));
    const manifest = text.state === 'found' ? readLenientJson(text.value)?.value : undefined;
    if (!isObject(manifest) || typeof manifest.version !== 'string') continue;
    return packageName.test(asText(manifest.name)) ? manifest.version : undefined;
  }
  return undefined;
}

function objectIn(json: Json, name: string): Json {
  const value = json[name];
  return isObject(value) ? value : {};
}

function texts(json: Json): Record<string, string> {
  const entries = Object.entries(json).filter(([, value]) => typeof value === 'string');
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The stronger file has the last word. */
function enabledIn(settings: readonly { json: Json }[]): Json {
  return Object.assign({}, ...settings.map(({ json }) => objectIn(json, 'enabledPlugins')));
}

function servers(state: Json): Registered[] {
  return Object.entries(objectIn(state, 'mcpServers')).map(([name, server]) => {
    const { type, command, args } = isObject(server) ? server : ({} as Json);
    return { name, type, command, args };
  });
}

function marketplace(markets: Json, isThere: Looking['isThere']): ClaudeFacts['marketplace'] {
  if (!isObject(markets.postbell)) return undefined;
  const at = markets.postbell.installLocation;
  if (typeof at !== 'string') return { missing: false };
  return { path: at, missing: !isThere(at) };
}

/** The installed one; of several, the one that is switched on. */
function pluginFacts(
  looking: Looking,
  files: JsonReader,
  { installed, markets, enabled }: { installed: Json; markets: Json; enabled: Json },
): PluginFacts | undefined {
  const found = Object.entries(installed).flatMap(([id, records]) => {
    const record: unknown = Array.isArray(records) ? records.at(-1) : undefined;
    return id.startsWith('postbell@') && isObject(record) ? [{ id, record }] : [];
  });
  const chosen = found.find(({ id }) => enabled[id] === true) ?? found[0];
  if (chosen === undefined) return undefined;
  const { id, record } = chosen;
  const copy = typeof record.installPath === 'string' ? record.installPath : '';
  const root = sourceFolder(files, objectIn(markets, id.slice('postbell@'.length))) ?? copy;
  const read = (file: PluginFile): [PluginFile, Looked<string>] => [
    file,
    looking.read(path.join(root, file)),
  ];
  const program = looking.launches(root);
  return {
    id,
    enabled: enabled[id] === true,
    version: typeof record.version === 'string' ? record.version : 'unknown',
    root,
    texts: Object.fromEntries(pluginFiles.map(read)) as PluginFacts['texts'],
    ...(program !== undefined && { launches: program }),
  };
}

/** A plugin of a marketplace that is a directory is run from there, not from the copy. */
function sourceFolder(files: JsonReader, market: Json): string | undefined {
  const { source, path: directory } = objectIn(market, 'source');
  if (source !== 'directory' || typeof directory !== 'string') return undefined;
  const { plugins } = files.read(path.join(directory, '.claude-plugin', 'marketplace.json'));
  const listed = Array.isArray(plugins)
    ? plugins.find((plugin) => isObject(plugin) && plugin.name === 'postbell')
    : undefined;
  const at = isObject(listed) && typeof listed.source === 'string' ? listed.source : '.';
  return path.join(directory, at);
}
