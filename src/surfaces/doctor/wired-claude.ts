// The wiring in Claude Code: the MCP server, and the hooks without which nothing rings.

import type { ClaudeFacts, PluginFacts, PluginFile } from '../../ports/inspection.ts';
import type { Finding } from '../../protocol/doctor.ts';
import { claudeVersions } from '../../protocol/host-versions.ts';
import { isObject } from '../../protocol/json.ts';
import { readLenientJson } from '../../protocol/lenient-json.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type DoctorFacts,
  ofNode,
  ownServers,
  pluginCommandLine,
  shellWord,
  unseen,
  versionNotes,
  type Wiring,
  warn,
} from './facts.ts';

const manifestSecondsMin = 3_600;
/** What the host gives an asynchronous hook that names no timeout. */
const hostSecondsDefault = 600;

/** Files of the host that say nothing. */
function blind({ unread, unstrict }: ClaudeFacts): Finding[] {
  const closed = unread.map(({ path, why }) =>
    unseen(`${path} ${why}`, `let Claude Code read ${shellWord(path)}`),
  );
  const odd = unstrict.map((path) =>
    warn(
      `${path} has comments or trailing commas, with which Claude Code does not read it`,
      `take them out of ${shellWord(path)}`,
    ),
  );
  return [...closed, ...odd];
}

export function claudeMcp({ claude, packageDirectory }: DoctorFacts): Wiring | undefined {
  if (!claude.present) return undefined;
  const lacks = `no hooks that wake a session (they came with ${claudeVersions.floor})`;
  const findings = [...blind(claude), ...versionNotes('Claude Code', claude.version, claudeVersions, lacks)];
  const { plugin } = claude;
  const [alone] = ownServers(claude.servers);
  if (plugin === undefined && alone === undefined)
    findings.push(warn('Claude Code knows no MCP server of Postbell', pluginCommandLine(packageDirectory)));
  if (plugin !== undefined) findings.push(...ofPlugin(plugin));
  if (plugin?.enabled && alone !== undefined)
    findings.push(
      warn(
        `two MCP servers for each session: the plugin\u2019s, and ${JSON.stringify(alone.name)}, registered by hand`,
        `claude mcp remove --scope user ${shellWord(alone.name)}`,
      ),
    );
  const by =
    plugin === undefined ? `by hand, as ${JSON.stringify(alone?.name)}` : `by the plugin ${plugin.id}`;
  return { findings, sound: `Claude Code: registered ${by}` };
}

function ofPlugin({ id, enabled, root, texts, launches }: PluginFacts): Finding[] {
  if (!enabled) return [warn(`the plugin ${id} is installed and switched off`, `claude plugin enable ${id}`)];
  const manifest = texts['.mcp.json'];
  const servers = manifest.state === 'found' ? readLenientJson(manifest.value)?.value : undefined;
  const again = `claude plugin update ${id}, or install it again`;
  const isWhole = isObject(servers) && isObject(servers.mcpServers) && isObject(servers.mcpServers.postbell);
  if (!isWhole) return [warn(`the plugin in ${root} names no MCP server postbell in its .mcp.json`, again)];
  return launches === undefined
    ? [
        warn(
          `the launcher of the plugin in ${root} finds no program to start`,
          'set POSTBELL_BIN to a dist/postbell.cjs, or put postbell on PATH',
        ),
      ]
    : [];
}

export function claudeHooks(facts: DoctorFacts): Wiring | undefined {
  const { claude, packageDirectory } = facts;
  if (!claude.present) return undefined;
  const findings = blind(claude);
  const { plugin } = claude;
  if (plugin === undefined) {
    const alone = ownServers(claude.servers).length > 0;
    const text = alone
      ? 'the MCP server is registered alone, without the hooks: no session can be rung'
      : 'Claude Code has no hooks of Postbell: no session can be rung';
    findings.push(warn(text, pluginCommandLine(packageDirectory)));
    return { findings, sound: '' };
  }
  if (!plugin.enabled)
    findings.push(
      warn(
        `the plugin ${plugin.id} is switched off, and its hooks with it`,
        `claude plugin enable ${plugin.id}`,
      ),
    );
  findings.push(...switchedOff(facts), ...ofFiles(plugin, facts.shipped), ...ofTimeouts(plugin));
  findings.push(...ofNode(facts));
  return {
    findings,
    sound: 'Claude Code: the hooks of the plugin are whole and as shipped; trust is the host\u2019s to say',
  };
}

/** What keeps the hooks from running, or the listener from ringing, though all is wired. */
function switchedOff({ claude, switches }: DoctorFacts): Finding[] {
  const off = claude.hooksOffIn.map((file) =>
    warn(
      `${file} switches all hooks off (disableAllHooks)`,
      `take disableAllHooks out of ${shellWord(file)}`,
    ),
  );
  const { POSTBELL_LISTENER, POSTBELL_CHANNELS } = { ...claude.environment, ...switches };
  if (POSTBELL_LISTENER === 'off')
    off.push(warn('POSTBELL_LISTENER=off: no listener rings', 'unset POSTBELL_LISTENER'));
  if (/^(1|true)$/i.test(POSTBELL_CHANNELS ?? ''))
    off.push(
      warn(
        'POSTBELL_CHANNELS is on, so that no listener rings',
        'unset POSTBELL_CHANNELS unless a channel is set up',
      ),
    );
  return off;
}

function ofFiles({ id, root, texts }: PluginFacts, shipped: DoctorFacts['shipped']): Finding[] {
  const again = `claude plugin update ${id}, or install it again`;
  const names = Object.keys(texts) as PluginFile[];
  const missing = names.filter((name) => texts[name].state === 'missing');
  if (missing.length > 0) return [warn(`the plugin in ${root} lacks ${missing.join(', ')}`, again)];
  for (const name of names) {
    const [here, ours] = [texts[name], shipped[name]];
    if (here.state === 'closed') return [unseen(`${name} in ${root} ${here.why}`, again)];
    if (ours.state !== 'found')
      return [unseen('this package lacks its own plugin', 'install Postbell again')];
  }
  const changed = names.filter((name) => shownText(texts, name) !== shownText(shipped, name));
  if (changed.length === 0) return [];
  return [warn(`the plugin in ${root} differs from the shipped one in ${changed.join(', ')}`, again)];
}

const shownText = (texts: DoctorFacts['shipped'], name: PluginFile): string | undefined => {
  const text = texts[name];
  return text.state === 'found' ? text.value : undefined;
};

interface Handler {
  args: string[];
  seconds: number;
}

/** A listener that the host ends before it renews itself leaves its session deaf until the next turn. */
function ofTimeouts({ texts }: PluginFacts): Finding[] {
  const manifest = texts['hooks/hooks.json'];
  if (manifest.state !== 'found') return [];
  const listeners = listenersOf(readLenientJson(manifest.value)?.value);
  if (listeners.length === 0)
    return [warn('hooks.json starts no listener: no session can be rung', 'install the plugin again')];
  const short = listeners.filter(({ seconds, args }) => renewalOf(args) >= seconds);
  if (short.length === 0) return [];
  const seconds = Math.min(...short.map((one) => one.seconds));
  const renewal = Math.max(1, Math.floor((seconds * limits.listenerRenewSecondsMax) / manifestSecondsMin));
  return [
    warn(
      `the manifest ends the listener after ${seconds} s, before it renews itself: an idle session goes deaf`,
      `give hooks.json the timeout ${manifestSecondsMin}, or the listener --renew-after-secs ${renewal} or less`,
    ),
  ];
}

function renewalOf(args: readonly string[]): number {
  const at = args.indexOf('--renew-after-secs');
  const given = at < 0 ? Number.NaN : Number(args[at + 1]);
  return Number.isInteger(given) ? given : limits.listenerRenewSecondsMax;
}

/** Handlers that wake the host when they end. */
function listenersOf(manifest: unknown): Handler[] {
  const events = isObject(manifest) && isObject(manifest.hooks) ? Object.values(manifest.hooks) : [];
  const groups = events.flatMap((event) => (Array.isArray(event) ? (event as unknown[]) : []));
  const handlers = groups.flatMap((group) =>
    isObject(group) && Array.isArray(group.hooks) ? (group.hooks as unknown[]) : [],
  );
  return handlers.filter(isObject).flatMap((handler) => {
    if (handler.asyncRewake !== true) return [];
    const args = Array.isArray(handler.args) ? handler.args.filter((one) => typeof one === 'string') : [];
    return [{ args, seconds: typeof handler.timeout === 'number' ? handler.timeout : hostSecondsDefault }];
  });
}
