// Gathers what doctor's rows are decided from: files, processes and the store are looked at, and left as they are.

import path from 'node:path';
import { claudeFacts, pluginFiles } from '../hosts/claude-code/installation.ts';
import { codexFacts, codexPluginFiles } from '../hosts/codex/installation.ts';
import { systemClock } from '../platform/clock.ts';
import { type Environment, quotaOf, setting } from '../platform/environment.ts';
import { readPrivateFile } from '../platform/files.ts';
import { leadsToFile, lookAt, namesIn, realPathOf, textOf } from '../platform/look.ts';
import { accountHome, checkSocketPath, type Places, placesOf } from '../platform/paths.ts';
import { loginShellFinds, onPath } from '../platform/programs.ts';
import { systemRandom } from '../platform/random.ts';
import type {
  ClaudeFacts,
  Entry,
  Looked,
  PluginTexts,
  ProgramFacts,
  Registered,
} from '../ports/inspection.ts';
import { describeError, Fault } from '../protocol/errors.ts';
import { isObject } from '../protocol/json.ts';
import { readLenientJson } from '../protocol/lenient-json.ts';
import { limits } from '../protocol/limits.ts';
import { version } from '../protocol/version.ts';
import { connectRouter } from '../router/client.ts';
import { checkSocket, checkSocketDirectory } from '../router/socket-owner.ts';
import type { ChannelFacts, DoctorFacts, RouterFacts } from '../surfaces/doctor/facts.ts';
import { codexTrust } from './codex-trust.ts';
import { linkStandingOf, lookAtAccount } from './examine-account.ts';
import { hostConfigs, privateFile } from './host-files.ts';
import { runningIntegrations, sessionsOf } from './integrations.ts';
import { probesAskedFor } from './probes.ts';

/** The package that this program lies in. */
export const packageDirectory = path.dirname(__dirname);

export async function examine(
  environment: Environment,
  asked = { probeRelays: false },
): Promise<DoctorFacts> {
  const places = placesOf(environment);
  const claude = lookAtClaude(environment);
  const codex = lookAtCodex(environment);
  const router = await lookAtRouter(places);
  const integrations = runningIntegrations(environment, places);
  return {
    nowMs: systemClock.nowMs(),
    version,
    packageDirectory,
    node: process.versions.node,
    ...(await lookAtStore(places, sessionsOf(integrations))),
    storePath: places.database,
    storeBytes: bytesOf(places.database),
    walBytes: bytesOf(`${places.database}-wal`),
    programs: programs(environment, claude, codex.servers),
    shell: await loginShellFinds(environment, 'postbell'),
    nodeOnPath: onPath(environment, 'node').some(({ dangling }) => !dangling),
    quota: quotaOf(environment),
    entries: entriesOf(places),
    ownDirectory: setting(environment, 'POSTBELL_DB') === undefined,
    outcomes: [`${places.hookOutcomes}.1`, places.hookOutcomes].map(textOf),
    router,
    account: await lookAtAccount(environment, asked),
    claude,
    codex: { ...codex, trust: await codexTrust(environment, codex) },
    shipped: shipped('claude-code', pluginFiles),
    shippedCodex: shipped('codex', codexPluginFiles),
    switches: switchesOf(environment),
    channel: lookAtChannel(environment, claude, places),
    integrations,
    hostConfigs: hostConfigs(environment, places),
    probes: await probesAskedFor(environment, places),
  };
}

const bytesOf = (file: string): number => {
  const found = lookAt(file);
  return found.state === 'found' ? found.value.bytes : 0;
};

/** Loaded here: where the driver is missing, that is a row and no reason to end. */
async function lookAtStore(
  { database }: Places,
  sessions: readonly string[],
): Promise<Pick<DoctorFacts, 'sqlite' | 'store'>> {
  let inspection: typeof import('../store/inspection.ts');
  let sqlite: DoctorFacts['sqlite'];
  try {
    inspection = await import('../store/inspection.ts');
    sqlite = { state: 'found', value: inspection.sqliteFacts() };
  } catch (error) {
    const why = String((error as NodeJS.ErrnoException).code ?? (error as Error).name);
    const store = lookAt(database).state === 'missing' ? missing : closed(`the SQLite driver: ${why}`);
    return { sqlite: closed(why), store };
  }
  try {
    const options = { path: database, clock: systemClock, random: systemRandom };
    const found = await inspection.inspectStore(options, sessions);
    return { sqlite, store: found === undefined ? missing : { state: 'found', value: found } };
  } catch (error) {
    const { code, message } = describeError(error);
    return { sqlite, store: closed(`${code}: ${message}`) };
  }
}

const missing = { state: 'missing' } as const;
const closed = (why: string) => ({ state: 'closed', why }) as const;

function lookAtClaude(environment: Environment): ClaudeFacts {
  const program = onPath(environment, 'claude').find(({ dangling }) => !dangling)?.path;
  return claudeFacts({
    configDirectory: setting(environment, 'CLAUDE_CONFIG_DIR'),
    home: accountHome(environment),
    project: process.cwd(),
    program,
    programFile: program === undefined ? undefined : realPathOf(program),
    read: textOf,
    isThere: (file) => lookAt(file).state !== 'missing',
    launches: (root) => launchedFrom(environment, root),
  });
}

function lookAtCodex(environment: Environment): ReturnType<typeof codexFacts> {
  return codexFacts({
    directory: setting(environment, 'CODEX_HOME') ?? path.join(accountHome(environment), '.codex'),
    program: onPath(environment, 'codex').find(({ dangling }) => !dangling)?.path,
    read: textOf,
    namesIn,
    isThere: (file) => lookAt(file).state !== 'missing',
    launches: (root, source) => launchedFrom(environment, root, source),
  });
}

/** As the launchers of the plugins find it. @param source where the host took a copy of the plugin from */
function launchedFrom(environment: Environment, root: string, source?: string): string | undefined {
  const named = setting(environment, 'POSTBELL_BIN');
  const candidates = [
    ...(named === undefined ? [] : [named]),
    path.join(root, '..', '..', 'dist', 'postbell.cjs'),
    ...onPath(environment, 'postbell').map((found) => found.path),
    ...(source === undefined ? [] : [path.join(source, 'dist', 'postbell.cjs')]),
  ];
  return candidates.map(realPathOf).find((file) => /\.c?js$/.test(file) && lookAt(file).state === 'found');
}

/** Every Postbell that a shell, a host or this account's variables would start. */
function programs(
  environment: Environment,
  { plugin, servers, marketplace }: ClaudeFacts,
  ofCodex: readonly Registered[],
): ProgramFacts[] {
  const bin = setting(environment, 'POSTBELL_BIN');
  const registered = [...servers.map(registeredAs('')), ...ofCodex.map(registeredAs(' of Codex'))].flat();
  const inPlugin =
    plugin === undefined
      ? []
      : [
          {
            where: 'the Claude Code plugin',
            path: plugin.root,
            ...versionIn(plugin.texts['.claude-plugin/plugin.json']),
            // A marketplace that is gone is said as such.
            missing: !marketplace?.missing && lookAt(plugin.root).state === 'missing',
          },
        ];
  return [
    ...(bin === undefined ? [] : [programAt('POSTBELL_BIN', bin)]),
    ...onPath(environment, 'postbell').map(({ path: file }) => programAt('PATH', file)),
    ...inPlugin,
    ...registered,
  ];
}

/** The program of a server that was registered by hand. */
const registeredAs =
  (of: string) =>
  ({ name, command, args }: Registered): ProgramFacts[] => {
    const words = [command, ...(Array.isArray(args) ? args : [])];
    const file = words.find((word) => typeof word === 'string' && /^\/.*\/postbell(\.cjs)?$/.test(word));
    return typeof file === 'string' ? [programAt(`the MCP server ${name}${of}`, file)] : [];
  };

function programAt(where: string, file: string): ProgramFacts {
  const real = realPathOf(file);
  const manifest = textOf(path.join(path.dirname(real), '..', 'package.json'));
  return {
    where,
    path: file,
    ...versionIn(manifest),
    missing: lookAt(real).state !== 'found' || isLink(real),
  };
}

/** What leads nowhere stays a link. */
const isLink = (file: string): boolean => {
  const found = lookAt(file);
  return found.state === 'found' && found.value.kind === 'link';
};

/** Of a manifest of Postbell. */
function versionIn(manifest: Looked<string>): { version?: string } {
  const json = manifest.state === 'found' ? readLenientJson(manifest.value)?.value : undefined;
  return isObject(json) && json.name === 'postbell' && typeof json.version === 'string'
    ? { version: json.version }
    : {};
}

/** What a plugin of this package holds. */
function shipped<File extends string>(plugin: string, files: readonly File[]): PluginTexts<File> {
  const root = path.join(packageDirectory, 'plugins', plugin);
  return Object.fromEntries(files.map((file) => [file, textOf(path.join(root, file))])) as PluginTexts<File>;
}

function switchesOf(environment: Environment): Record<string, string> {
  const names = ['POSTBELL_LISTENER', 'POSTBELL_CHANNELS'] as const;
  const set = names.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(set);
}

/** The data directory first. Sockets are the router rows' business, and those of Codex its own. */
function entriesOf(places: Places): Looked<Entry>[] {
  const { directory, database, runtime, gateDirectory, hostDirectory } = places;
  const own = [database, `${database}-wal`, `${database}-shm`, places.routerLock, places.routerToken];
  const logs = [places.hookOutcomes, `${places.hookOutcomes}.1`];
  const within = [runtime, gateDirectory, hostDirectory].flatMap((folder) => {
    const names = namesIn(folder);
    if (names.state === 'closed') return [closed(`${folder} ${names.why}`)];
    const files = names.state === 'found' ? names.value.map((name) => path.join(folder, name)) : [];
    return [folder, ...files].map(lookAt);
  });
  const looked = [...[directory, ...own, ...logs].map(lookAt), ...within];
  return looked.filter((one) => one.state !== 'found' || !isSocket(one.value));
}

/** Codex makes the socket that it is told to make a link to one elsewhere; killed, it leaves the link. */
const isSocket = ({ path: file, kind }: Entry): boolean =>
  kind === 'socket' || (kind === 'link' && file.endsWith('.sock') && !leadsToFile(file));

async function lookAtRouter(places: Places): Promise<RouterFacts> {
  const { routerSocket } = places;
  const facts = { path: routerSocket, bytes: Buffer.byteLength(routerSocket) };
  try {
    checkSocketPath(routerSocket);
  } catch (error) {
    return { ...facts, invalid: describeError(error).message, socket: 'missing' };
  }
  const at = lookAt(routerSocket);
  if (at.state === 'closed') return { ...facts, socket: 'unseen', why: `${routerSocket} ${at.why}` };
  try {
    // A directory that is not there is made by the first that needs it.
    if (lookAt(path.dirname(routerSocket)).state !== 'missing') checkSocketDirectory(routerSocket);
    checkSocket(routerSocket);
  } catch (error) {
    const { code, message } = describeError(error);
    return code === 'insecure_path'
      ? { ...facts, socket: 'insecure', why: message }
      : { ...facts, socket: 'missing' };
  }
  return { ...facts, socket: 'private', running: await askRouter(places) };
}

async function askRouter(places: Places): Promise<NonNullable<RouterFacts['running']>> {
  try {
    const auth_token = readPrivateFile(places.routerToken)?.trim();
    if (auth_token === undefined) throw new Fault('router_unreachable', 'no router has left a token here');
    const client = await connectRouter(places.routerSocket, { clock: systemClock });
    const asked = client.request({ type: 'status', auth_token }, limits.routerCallWaitMs);
    const { postbell_version: running, link } = await asked.finally(() => client.close());
    const standing = linkStandingOf(link);
    return {
      ...(typeof running === 'string' && { version: running }),
      ...(standing !== undefined && { link: standing }),
    };
  } catch (error) {
    const { code, message } = describeError(error);
    return { failed: `${code}: ${message}` };
  }
}

/** Where the directory, or the host that started this process, is a Claude plugin's. */
function lookAtChannel(
  environment: Environment,
  { servers }: ClaudeFacts,
  { routerSocket }: Places,
): ChannelFacts | undefined {
  const roots = [process.cwd(), setting(environment, 'CLAUDE_PLUGIN_ROOT')];
  const isPlugin = roots.some(
    (root) =>
      root !== undefined && lookAt(path.join(root, '.claude-plugin', 'plugin.json')).state === 'found',
  );
  if (!isPlugin) return undefined;
  const server = servers.find(({ name }) => name === 'postbell-channel');
  if (server === undefined) return { server: missing, socket: routerSocket };
  const file = configNamedBy(server);
  return {
    server: { state: 'found', value: server },
    ...(file !== undefined && { config: privateFile(file) }),
    socket: routerSocket,
  };
}

/** Of `postbell host claude --config FILE`, in whatever way the program is named; undefined for any other command. */
function configNamedBy({ type, command, args }: ClaudeFacts['servers'][number]): string | undefined {
  const words = [command, ...(Array.isArray(args) ? args : [])];
  if ((type !== undefined && type !== 'stdio') || !words.every((word) => typeof word === 'string'))
    return undefined;
  const [file, flag, ...before] = words.reverse() as string[];
  const isIt = /(^|\s|\/)postbell(\.cjs)? host claude$/.test(before.reverse().join(' '));
  return flag === '--config' && isIt && file !== undefined && path.isAbsolute(file) ? file : undefined;
}
