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
  /** The newest of the last days for each Codex thread: what came of starting a notice in its queue. */
  queueReleases: QueueRelease[];
  link: LinkFacts;
}

export interface LinkFacts {
  /** What is on its way to peers: how much, and the oldest of it with where it stands. */
  outbox: {
    count: number;
    oldest?: { created_at: string; peer_key: string; relayed: boolean; last_error: string | null };
  };
  /** What the trust gate refused, by its step. */
  refused: readonly { step: string; count: number; last_at: string }[];
  /** Keys of peers that refused mail from here for the time at which it was signed, within a week. */
  stale: readonly string[];
  /** Chains of answers from other machines that went on for so long that they wake nobody, within a week. */
  looped: number;
}

export interface QueueRelease {
  session_id: string;
  value: string;
  /** Absent where the fact names none. */
  reason?: string;
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
export type PluginTexts<File extends string = PluginFile> = Readonly<Record<File, Looked<string>>>;

export interface ClaudeFacts {
  /** The host's own directory. */
  directory: string;
  /** Whether its program or its directory was found. */
  present: boolean;
  /** `claude` on PATH. */
  program?: string;
  /** Of that program, where the place it lies in says so. */
  version?: string;
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

/** What a copy of the plugin for Codex is known by. */
export type CodexPluginFile =
  | '.codex-plugin/plugin.json'
  | '.mcp.json'
  | 'hooks/hooks.json'
  | 'launch.cjs'
  | 'skills/postbell/SKILL.md';

export interface CodexFacts {
  /** The host's own directory. */
  directory: string;
  /** Whether its program or its directory was found. */
  present: boolean;
  /** `codex` on PATH. */
  program?: string;
  /** Its settings, where they say nothing: closed to this account, or no TOML. */
  unread: readonly { path: string; why: string }[];
  plugin?: CodexPlugin;
  /** Where the host looks for the plugin; undefined where it knows no such marketplace. */
  marketplace?: { path?: string; missing: boolean };
  servers: readonly Registered[];
  /** Whether its settings switch all hooks off. */
  hooksOff: boolean;
  /** What a Codex that was asked says; `missing` where there was nothing to ask about, or nobody to ask. */
  trust: Looked<{
    version?: string;
    hooks?: readonly CodexHook[];
    errors: number;
    refused?: string;
  }>;
}

export interface CodexPlugin {
  /** `postbell@MARKETPLACE`. */
  id: string;
  enabled: boolean;
  /** The folder that holds a copy for each version. */
  copies: string;
  /** Why that folder cannot be looked at. */
  unread?: string;
  /** The copy that the host runs; undefined where there is none. */
  copy?: { version: string; root: string; texts: PluginTexts<CodexPluginFile> };
  /** What its launcher would start; undefined where it finds nothing. */
  launches?: string;
}

/** A hook of the plugin, as Codex lists it. */
export interface CodexHook {
  event: string;
  /** `trusted`, `managed`, `untrusted`, `modified`, or what a newer release says. */
  trust: string;
  enabled: boolean;
}
