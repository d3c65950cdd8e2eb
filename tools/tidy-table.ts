// The data of tools/tidy.ts: who may import whom, which libraries belong where, what is banned, and the limits.

export interface Layer {
  /** Folders under src/ that this one may import, beside its own. */
  imports: readonly string[];
  /** Folders of `imports` of which only types may be imported. */
  typesOnly?: readonly string[];
  /** Bare specifiers: `name` covers its subpaths, `node:*` and `@scope/*` cover all that begins so. */
  vendors: readonly string[];
  /** Each entry of this folder stands alone: no sibling imports another. */
  siblings?: {
    /** Libraries of one sibling, added to `vendors`. */
    vendors?: Readonly<Record<string, readonly string[]>>;
    /** Files directly in the folder that its siblings may import, by name without extension. */
    shared?: readonly string[];
  };
}

const pure = ['protocol', 'crypto', 'ports'];
const useCases = ['mailbox', 'sessions', 'peers', 'memory'];
const useCase: Layer = { imports: [...pure, ...useCases], vendors: [] };
const adapters = ['store', 'carriers', 'hosts', 'router', 'relay', 'surfaces', 'platform'];

/** One row a folder under src/. */
export const layers: Readonly<Record<string, Layer>> = {
  protocol: { imports: [], vendors: [] },
  crypto: { imports: ['protocol'], vendors: ['node:crypto'] },
  ports: { imports: ['protocol'], typesOnly: ['protocol'], vendors: [] },

  mailbox: useCase,
  sessions: useCase,
  peers: useCase,
  memory: useCase,

  store: { imports: pure, vendors: ['better-sqlite3', 'node:*'] },
  platform: { imports: pure, vendors: ['node:*', 'pino'] },
  carriers: { imports: pure, vendors: ['node:*'], siblings: {} },
  hosts: {
    imports: pure,
    vendors: ['node:*'],
    siblings: {
      vendors: { acp: ['@agentclientprotocol/sdk'], codex: ['ws'] },
      shared: ['process-group'],
    },
  },

  router: { imports: [...pure, ...useCases], vendors: ['node:*'] },
  relay: { imports: [...pure, ...useCases], vendors: ['node:*', 'hono', '@hono/*', '@nats-io/*'] },
  surfaces: {
    imports: ['protocol', 'ports', ...useCases],
    typesOnly: ['ports'],
    vendors: ['node:*'],
    siblings: {
      vendors: {
        mcp: ['@modelcontextprotocol/server', 'zod'],
        http: ['hono', '@hono/*', 'zod'],
        cli: ['commander'],
      },
    },
  },

  compose: {
    imports: [...pure, ...useCases, ...adapters],
    vendors: ['node:*'],
    siblings: {
      shared: [
        'store',
        'gate',
        'local',
        'identity',
        'recipient',
        'reachable',
        'project',
        'daemon',
        'queues',
        'launch',
        'setup',
        'failure',
        'ending',
        'examine',
        'examine-account',
        'probes',
        'codex-trust',
        'host-files',
        'integrations',
        'configured',
        'codex-host',
        'codex-place',
        'codex-server',
        'companions',
        'companion-start',
        'injected',
        'runner',
        'pairing',
        'link',
        'account',
        'relays',
        'relay-options',
      ],
    },
  },
};

/** src/main.ts imports these folders, and loads an entry of `loads` by a lazy `import()`. */
export const main = { imports: ['protocol'], loads: 'compose' };

export interface BannedMember {
  object: string;
  member: RegExp;
  instead: string;
  /** Folders (or `main`) where it is allowed all the same. */
  allowedIn?: readonly string[];
}

/** Clock, randomness, timers, environment and console live here alone. */
export const bannedExceptIn = 'platform';

const composing = ['main', 'compose'];

export const bannedMembers: readonly BannedMember[] = [
  { object: 'Date', member: /^now$/, instead: 'take the time from the clock port' },
  { object: 'performance', member: /^now$/, instead: 'take the time from the clock port' },
  { object: 'process', member: /^hrtime$/, instead: 'take the time from the clock port' },
  { object: 'Math', member: /^random$/, instead: 'take random numbers from the random port' },
  {
    object: 'crypto',
    member: /^(random.*|getRandomValues)$/,
    instead: 'take random bytes from the random port',
  },
  { object: 'AbortSignal', member: /^timeout$/, instead: 'wait by the clock port' },
  { object: 'process', member: /^env$/, instead: 'have the environment passed in' },
  { object: 'process', member: /^argv$/, instead: 'have the arguments passed in', allowedIn: composing },
  { object: 'process', member: /^(exitCode|exit)$/, instead: 'return the outcome', allowedIn: composing },
];

export interface BannedWord {
  word: RegExp;
  instead: string;
  /** A method of that name on another object is something else (`socket.setTimeout`). */
  globalOnly?: boolean;
}

export const bannedWords: readonly BannedWord[] = [
  {
    word: /^(randomBytes|randomUUID|randomInt|randomFill(Sync)?|getRandomValues|generateKeyPair(Sync)?)$/,
    instead: 'take random bytes from the random port',
  },
  {
    word: /^set(Timeout|Interval|Immediate)$/,
    instead: 'wait by the clock port',
    globalOnly: true,
  },
  { word: /^console$/, instead: 'return the text, or use the log port', globalOnly: true },
];

/** Modules that are banned names by another road. */
export const bannedModules = /^(node:)?(timers|process|console)(\/|$)/;

/** In *.sql and in string literals: the store is told the time. */
export const sqlTime =
  /\bcurrent_(timestamp|time|date)\b|\b(strftime|julianday|unixepoch)\s*\(|\b(datetime|date|time)\s*\(\s*'now'/gi;

/** Where sources are read; the rules of shape hold in all of them. */
export const sourceRoots = ['src', 'test', 'tools', 'bench', 'dashboard'];

export const folderNamesBanned = ['core', 'common', 'utils', 'helpers', 'lib', 'shared'];

export const limits = {
  fileLinesNote: 400,
  fileLinesMax: 600,
  functionLinesMax: 70,
};

/** Files of data: as long as their data. */
export const sizeExempt = [/\.sql$/, /(^|[-/])tables?\.ts$/, /^test\/vectors\//];

/** In a test file a `describe` is a function, as long as its scenes. */
export const functionSizeExempt = [/^test\//, /^dashboard\//];

/** Files whose reader asks for a default export. */
export const defaultExportExempt = [/\.config\.[mc]?[jt]s$/, /\.d\.ts$/];

/** Packages that may be inside a bundle of dist/; a name ends with `/*` for a whole scope. */
export const bundles: Readonly<Record<string, readonly string[]>> = {
  'hook.cjs': ['better-sqlite3'],
  'wait.cjs': ['better-sqlite3'],
  'cli.cjs': ['better-sqlite3'],
  'doctor.cjs': ['better-sqlite3'],
  'router.cjs': [
    'better-sqlite3',
    'pino',
    'pino-std-serializers',
    'sonic-boom',
    'thread-stream',
    'on-exit-leak-free',
    'quick-format-unescaped',
    'safe-stable-stringify',
    'atomic-sleep',
    'real-require',
    'process-warning',
    '@pinojs/*',
    'ws',
  ],
  'mcp.cjs': ['better-sqlite3', '@modelcontextprotocol/*', 'zod'],
  'relay.cjs': [
    'better-sqlite3',
    'hono',
    '@hono/*',
    'pino',
    'pino-std-serializers',
    'sonic-boom',
    'thread-stream',
    'on-exit-leak-free',
    'quick-format-unescaped',
    'safe-stable-stringify',
    'atomic-sleep',
    'real-require',
    'process-warning',
    '@pinojs/*',
  ],
  'host.cjs': ['better-sqlite3', '@modelcontextprotocol/*', 'zod'],
  'acp.cjs': ['better-sqlite3', '@agentclientprotocol/*', 'zod'],
  'codex.cjs': ['better-sqlite3', 'ws'],
  'companion.cjs': ['better-sqlite3'],
  'peer.cjs': ['better-sqlite3'],
  'claude.cjs': [],
};

/** Texts that belong to one developer's machine, never to the tree. */
export const machineText = [/\/(work|farm)\//, /\.library\//];

/** Generated, and full of other people's paths. */
export const treeTextExempt = ['package-lock.json'];
