// What the rows are decided from: gathered once, before any row is.

import type {
  ClaudeFacts,
  CodexFacts,
  CodexPluginFile,
  Entry,
  Integration,
  Looked,
  PluginTexts,
  ProgramFacts,
  Registered,
  SqliteFacts,
  StoreFacts,
} from '../../ports/inspection.ts';
import type { Finding } from '../../protocol/doctor.ts';
import { type KnownVersions, standingOf } from '../../protocol/host-versions.ts';
import { quoted } from '../../protocol/json.ts';

export interface DoctorFacts {
  nowMs: number;
  /** Of the program that looks. */
  version: string;
  /** The package it lies in. */
  packageDirectory: string;
  node: string;
  sqlite: Looked<SqliteFacts>;
  /** Others that something would start. */
  programs: readonly ProgramFacts[];
  /** Where a login shell finds `postbell`. */
  shell: Looked<string>;
  /** Whether PATH has a `node`, with which hosts start the hooks. */
  nodeOnPath: boolean;
  storePath: string;
  store: Looked<StoreFacts>;
  storeBytes: number;
  walBytes: number;
  quota: number | 'malformed' | undefined;
  /** The data directory and all that lies in it. */
  entries: readonly Looked<Entry>[];
  /** Whether the data directory is Postbell’s own, not one in which somebody placed a database. */
  ownDirectory: boolean;
  /** Texts of the log of hooks, the older first. */
  outcomes: readonly Looked<string>[];
  router: RouterFacts;
  account: AccountFacts;
  claude: ClaudeFacts;
  codex: CodexFacts;
  /** What the plugins of this package hold. */
  shipped: PluginTexts;
  shippedCodex: PluginTexts<CodexPluginFile>;
  /** The variables that switch the listener off, as they are here. */
  switches: Readonly<Record<string, string>>;
  /** Undefined where doctor does not run from a Claude plugin directory. */
  channel: ChannelFacts | undefined;
  /** Servers and listeners that run now; `missing` where this system does not show them. */
  integrations: Looked<readonly Looked<Integration>[]>;
  hostConfigs: Looked<readonly HostFile[]>;
  probes: { capability?: ProbeFacts; router?: ProbeFacts };
}

export interface RouterFacts {
  path: string;
  bytes: number;
  /** Why no router can have that path. */
  invalid?: string;
  socket: 'private' | 'missing' | 'insecure' | 'unseen';
  /** Why it is insecure, or cannot be looked at. */
  why?: string;
  /** What answers there; absent where nothing was asked. */
  running?: { version?: string; link?: LinkStanding } | { failed: string };
}

/** What a running router says of its relays. */
export interface LinkStanding {
  relays: readonly { origin: string; failure?: string; since: string; clock?: string }[];
  why?: string;
}

export interface AccountFacts {
  identity: Looked<{ key: string }>;
  /** How many. */
  peers: Looked<number>;
  /** Origins; closed where the list is malformed. */
  relays: Looked<readonly string[]>;
  /** Where they were asked now: why one does not answer. */
  probed?: readonly { origin: string; why?: string }[];
}

export interface ChannelFacts {
  /** Of the user-scoped `postbell-channel`; what is no object is closed. */
  server: Looked<Registered>;
  /** The file that its `--config` names. */
  config?: HostFile;
  /** The router's socket here. */
  socket: string;
}

/** An owner-private file; `insecure` where others have access to it. */
export interface HostFile {
  path: string;
  text: Looked<string> | { state: 'insecure'; why: string };
  /** What it names and is not there: its workspace, or the program of its command. */
  stale?: string;
}

export interface ProbeFacts {
  passed: boolean;
  text: string;
}

/** What was found of one installed host, and what is said of it where nothing is wrong. */
export interface Wiring {
  findings: readonly Finding[];
  sound: string;
}

export const warn = (text: string, hint: string): Finding => ({ level: 'warn', text, hint });

/** The servers that are Postbell's own, whatever they are called; the channel's apart. */
export const ownServers = (servers: readonly Registered[]): Registered[] =>
  servers.filter(({ command, args }) => {
    const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === 'string');
    return (
      words.includes('mcp') && words.some((word) => /(^|[/\\])(postbell(\.cjs)?|launch\.cjs)$/.test(word))
    );
  });

/** Without it no hook of any host runs. */
export const ofNode = ({ nodeOnPath }: Pick<DoctorFacts, 'nodeOnPath'>): Finding[] =>
  nodeOnPath
    ? []
    : [warn('the host starts hooks with node, and PATH has none', 'put the folder of node on PATH')];

/** Of a row that could not look. */
export const unseen = (why: string, hint?: string): Finding => ({
  level: 'warn',
  text: `could not look: ${why}`,
  ...(hint !== undefined && { hint }),
});

/** What runs is used, whatever it is; what it lacks is found by trying. @param lacks what one below the floor has not */
export function versionNotes(
  host: string,
  version: string | undefined,
  known: KnownVersions,
  lacks: string,
): Finding[] {
  if (version === undefined) return [];
  const standing = standingOf(version, known);
  if (standing === 'refused')
    return [warn(`${host} ${version} has ${lacks}`, `install ${host} ${known.tested} or newer`)];
  if (standing === 'tested') return [];
  const age = standing === 'limited' ? 'is older than' : 'is another than';
  const text = `${host} ${version} ${age} the ${known.tested} that was tested; it is used, and what it lacks is found by trying`;
  return [{ level: 'info', text }];
}

/** As a word of a shell. */
export const shellWord = (text: string): string =>
  /^[\w./@:+~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The first few of them, each on its own, and how many there are more. */
export function listed(names: readonly string[], shown = 3): string {
  const more = names.length - shown;
  const first = names.slice(0, shown).map(quoted).join(', ');
  return more > 0 ? `${first} and ${more} more` : first;
}

export function sizeOf(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 1_048_576 ? `${Math.round(bytes / 1_024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

/** The host's own commands, to be copied whole. */
export const pluginCommands = (packageDirectory: string): readonly (readonly string[])[] => [
  ['claude', 'plugin', 'marketplace', 'add', packageDirectory],
  ['claude', 'plugin', 'install', 'postbell@postbell'],
];

/** A marketplace of that name that leads elsewhere has to go first. */
export const codexCommands = (
  packageDirectory: string,
  marketplace: CodexFacts['marketplace'],
): readonly (readonly string[])[] => [
  ...(marketplace?.missing ? [['codex', 'plugin', 'marketplace', 'remove', 'postbell']] : []),
  ...(marketplace === undefined || marketplace.missing
    ? [['codex', 'plugin', 'marketplace', 'add', packageDirectory]]
    : []),
  ['codex', 'plugin', 'add', 'postbell@postbell'],
];

export const pluginCommandLine = (packageDirectory: string): string =>
  commandLine(pluginCommands(packageDirectory));

export const commandLine = (commands: readonly (readonly string[])[]): string =>
  commands.map((words) => words.map(shellWord).join(' ')).join(' && ');
