// What doctor learns of an installation by looking: files, processes and the store as they are, nothing made or changed.

import type { Bell, HostKind } from '../protocol/session.ts';

/** `closed`: whoever looks is not let in, or cannot make sense of what is there. */
export type Looked<T> =
  | { state: 'found'; value: T }
  | { state: 'missing' }
  | { state: 'closed'; why: string };

/** Something at a path, by `lstat` alone. */
export interface Entry {
  path: string;
  kind: 'file' | 'directory' | 'socket' | 'link' | 'other';
  /** Permission bits. */
  mode: number;
  /** Whether it belongs to this account. */
  own: boolean;
  bytes: number;
}

export interface SqliteFacts {
  version: string;
  /** Whether several connections may share a WAL in it. */
  fit: boolean;
  fts5: boolean;
}

/** A store that opened. */
export interface StoreFacts {
  schema: number;
  schemaKnown: number;
  /** The first thing that SQLite finds wrong with the file. */
  damage?: string;
  /** Absent where the schema is older or the file damaged. */
  mail?: MailFacts;
}

export interface MailFacts {
  payloadBytes: number;
  /** Every project, sender, recipient, principal and session id once. */
  identifiers: string[];
  live: LiveSession[];
  /** Sessions whose lease ran out within a day. */
  expired: number;
  /** Of each session id that was asked about: the first id of its chain. */
  roots: Readonly<Record<string, string>>;
}

/** A server or a listener of a session that runs now. */
export interface Integration {
  role: 'server' | 'listener';
  /** The process of its host: what has the same is of one session. */
  hostPid: number;
  database: string;
  /** The session it is told of; absent where its process does not show it. */
  session?: string;
  /** Whether a person named that session. */
  pinned: boolean;
  /** Whether its store is the one that is looked at. */
  looked: boolean;
  /** Whether it has the home of whoever looks. */
  ours: boolean;
}

export interface LiveSession {
  project: string;
  session_id: string;
  host_kind: HostKind;
  bell: Bell;
  connected_at: string;
  /** Whether a hook of it has ever come to this store. */
  hookSeen: boolean;
  /** Whether its last three rings brought no intake. */
  unanswered: boolean;
}

/** One Postbell that something would start. */
export interface ProgramFacts {
  where: string;
  path: string;
  /** Absent where nothing says it. */
  version?: string;
  missing: boolean;
}

/** Of a registered MCP server, as the host's own file has it. */
export interface Registered {
  name: string;
  type?: unknown;
  command?: unknown;
  args?: unknown;
}

/** What the host starts of a plugin, or reads to know it. */
export type PluginFile = '.claude-plugin/plugin.json' | '.mcp.json' | 'hooks/hooks.json' | 'launch.cjs';
export type PluginTexts = Readonly<Record<PluginFile, Looked<string>>>;

export interface ClaudeFacts {
  /** The host's own directory. */
  directory: string;
  /** Whether its program or its directory was found. */
  present: boolean;
  /** `claude` on PATH. */
  program?: string;
  /** Files that say nothing: closed to this account, or no JSON. */
  unread: readonly { path: string; why: string }[];
  /** Files that were read here and that the host does not read. */
  unstrict: readonly string[];
  plugin?: PluginFacts;
  /** Where the host looks for the plugin; undefined where it knows no such marketplace. */
  marketplace?: { path?: string; missing: boolean };
  /** Servers registered for the user. */
  servers: readonly Registered[];
  /** Files that switch all hooks off. */
  hooksOffIn: readonly string[];
  /** Variables that the host's settings set for what it starts. */
  environment: Readonly<Record<string, string>>;
}

export interface PluginFacts {
  /** `postbell@MARKETPLACE`. */
  id: string;
  enabled: boolean;
  version: string;
  /** The folder the host runs it from. */
  root: string;
  texts: PluginTexts;
  /** What its launcher would start; undefined where it finds nothing. */
  launches?: string;
}
