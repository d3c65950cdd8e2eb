// The wiring in Codex: the MCP server, and the hooks, which it runs only where a person trusts them. It skips the others
// without a word, so that this is where it is seen.

import type { CodexFacts, CodexPlugin, CodexPluginFile } from '../../ports/inspection.ts';
import type { Finding } from '../../protocol/doctor.ts';
import { codexVersions } from '../../protocol/host-versions.ts';
import { isObject } from '../../protocol/json.ts';
import { readLenientJson } from '../../protocol/lenient-json.ts';
import {
  codexCommands,
  commandLine,
  type DoctorFacts,
  listed,
  ofNode,
  ownServers,
  shellWord,
  unseen,
  versionNotes,
  type Wiring,
  warn,
} from './facts.ts';

const review =
  'start codex in a terminal and review the hooks when it asks (Hooks need review), or by /hooks; Postbell grants no trust';

const again = ({ id }: Pick<CodexPlugin, 'id'>): string => `codex plugin add ${shellWord(id)}`;

/** Settings of the host that say nothing. */
const blind = ({ unread, plugin }: CodexFacts): Finding[] => [
  ...unread.map(({ path, why }) => unseen(`${path} ${why}`, `mend ${shellWord(path)}`)),
  ...(plugin?.unread === undefined
    ? []
    : [unseen(plugin.unread, `make ${shellWord(plugin.copies)} readable`)]),
];

export function codexMcp({ codex, packageDirectory }: DoctorFacts): Wiring | undefined {
  if (!codex.present) return undefined;
  const findings = [...blind(codex), ...ofVersion(codex)];
  const { plugin, servers, marketplace, unread } = codex;
  const [alone] = ownServers(servers);
  const name = JSON.stringify(alone?.name);
  if (plugin === undefined && alone === undefined && unread.length === 0)
    findings.push(
      warn(
        'Codex knows no MCP server of Postbell',
        commandLine(codexCommands(packageDirectory, marketplace)),
      ),
    );
  if (plugin !== undefined) findings.push(...ofServer(plugin));
  if (plugin?.enabled && alone !== undefined)
    findings.push(
      warn(
        `two MCP servers for each Codex thread: the plugin\u2019s, and ${name}, registered by hand`,
        `codex mcp remove ${shellWord(alone.name)}`,
      ),
    );
  const by = plugin === undefined ? `by hand, as ${name}` : `by the plugin ${plugin.id}`;
  return { findings, sound: `Codex: registered ${by}` };
}

function ofVersion({ trust }: CodexFacts): Finding[] {
  const version = trust.state === 'found' ? trust.value.version : undefined;
  const floor = `no queue that a session could be rung by (codex queue came with ${codexVersions.floor})`;
  return versionNotes('Codex', version, codexVersions, floor);
}

function ofServer(plugin: CodexPlugin): Finding[] {
  const { id, enabled, copy, copies, launches, unread } = plugin;
  if (!enabled)
    return [warn(`the Codex plugin ${id} is installed and switched off`, 'switch it on in codex: /plugins')];
  if (unread !== undefined) return [];
  if (copy === undefined) return [warn(`Codex has no copy of the plugin ${id} in ${copies}`, again(plugin))];
  const manifest = copy.texts['.mcp.json'];
  const servers = manifest.state === 'found' ? readLenientJson(manifest.value)?.value : undefined;
  const isWhole = isObject(servers) && isObject(servers.mcpServers) && isObject(servers.mcpServers.postbell);
  if (!isWhole)
    return [warn(`the plugin in ${copy.root} names no MCP server postbell in its .mcp.json`, again(plugin))];
  return launches === undefined
    ? [
        warn(
          `the launcher of the plugin in ${copy.root} finds no program to start`,
          'set POSTBELL_BIN to a dist/postbell.cjs, or put postbell on PATH',
        ),
      ]
    : [];
}

export function codexHooks(facts: DoctorFacts): Wiring | undefined {
  const { codex, packageDirectory } = facts;
  if (!codex.present) return undefined;
  const findings = blind(codex);
  const { plugin, servers, marketplace, unread } = codex;
  const sound = 'Codex: the hooks of the plugin are whole, as shipped, and trusted';
  if (plugin === undefined) {
    const text =
      ownServers(servers).length > 0
        ? 'Codex: the MCP server is registered alone, without the hooks: no thread can be rung'
        : 'Codex has no hooks of Postbell: no thread can be rung';
    if (unread.length === 0)
      findings.push(warn(text, commandLine(codexCommands(packageDirectory, marketplace))));
    return { findings, sound };
  }
  if (!plugin.enabled) {
    const text = `the Codex plugin ${plugin.id} is switched off, and its hooks with it`;
    return { findings: [...findings, warn(text, 'switch it on in codex: /plugins')], sound };
  }
  if (codex.hooksOff)
    findings.push(
      warn(
        'the settings of Codex switch all hooks off (features.hooks)',
        `take hooks = false out of ${shellWord(`${codex.directory}/config.toml`)}`,
      ),
    );
  if (plugin.copy === undefined && plugin.unread === undefined)
    findings.push(warn(`Codex has no copy of the plugin ${plugin.id}, and so no hooks of it`, again(plugin)));
  findings.push(...ofCopy(plugin, facts.shippedCodex), ...ofTrust(facts), ...ofNode(facts));
  return { findings, sound };
}

function ofCopy(plugin: CodexPlugin, shipped: DoctorFacts['shippedCodex']): Finding[] {
  if (plugin.copy === undefined) return [];
  const { root, texts } = plugin.copy;
  const names = Object.keys(texts) as CodexPluginFile[];
  const missing = names.filter((name) => texts[name].state === 'missing');
  if (missing.length > 0) return [warn(`the plugin in ${root} lacks ${missing.join(', ')}`, again(plugin))];
  const changed: string[] = [];
  for (const name of names) {
    const [here, ours] = [texts[name], shipped[name]];
    if (here.state === 'closed') return [unseen(`${name} in ${root} ${here.why}`, again(plugin))];
    if (ours.state !== 'found')
      return [unseen('this package lacks its own plugin for Codex', 'install Postbell again')];
    if (here.state === 'found' && here.value !== ours.value) changed.push(name);
  }
  return changed.length === 0
    ? []
    : [warn(`the plugin in ${root} differs from the shipped one in ${changed.join(', ')}`, again(plugin))];
}

/** By what Codex says itself; where nobody can be asked, nothing is said of trust but that. */
function ofTrust({ codex }: DoctorFacts): Finding[] {
  const { trust, program, plugin, unread } = codex;
  const asked = (why: string): Finding[] => [unseen(`which hooks are trusted: ${why}`, review)];
  if (trust.state === 'closed') return asked(trust.why);
  if (trust.state === 'missing')
    return program === undefined && plugin?.copy !== undefined && unread.length === 0
      ? asked('no codex on PATH to ask')
      : [];
  const { hooks, refused, errors } = trust.value;
  if (hooks === undefined) return asked(`Codex does not say (${refused ?? 'no answer'})`);
  const wrong = errors === 1 ? '1 error' : `${errors} errors`;
  const findings = errors > 0 ? [warn(`Codex finds ${wrong} in hooks`, review)] : [];
  const shipped = handlersIn(plugin);
  if (hooks.length < shipped)
    findings.push(
      warn(
        `Codex lists ${hooks.length} of the ${shipped} hooks of the plugin`,
        `use a release of Codex that knows them (${codexVersions.tested} does)`,
      ),
    );
  const said = (which: (typeof hooks)[number][]): string =>
    `${which.length} of ${hooks.length} (${listed([...new Set(which.map(({ event }) => event))])})`;
  const off = hooks.filter(({ enabled }) => !enabled);
  if (off.length > 0)
    findings.push(
      warn(`Codex has hooks of the plugin switched off: ${said(off)}`, 'switch them on in codex: /hooks'),
    );
  const reasons = {
    untrusted: 'nobody has reviewed them yet',
    modified: 'they changed since they were reviewed',
  };
  for (const [state, why] of Object.entries(reasons)) {
    const which = hooks.filter(({ trust: given }) => given === state);
    if (which.length > 0)
      findings.push(
        warn(`Codex skips hooks of the plugin without a word, ${state}: ${said(which)}; ${why}`, review),
      );
  }
  const odd = hooks.filter(
    ({ trust: given }) => !['trusted', 'managed', ...Object.keys(reasons)].includes(given),
  );
  if (odd.length > 0)
    findings.push(
      unseen(`Codex calls the trust of hooks ${listed([...new Set(odd.map((one) => one.trust))])}`, review),
    );
  return findings;
}

/** Handlers of its manifest. */
function handlersIn(plugin: CodexPlugin | undefined): number {
  const text = plugin?.copy?.texts['hooks/hooks.json'];
  const manifest = text?.state === 'found' ? readLenientJson(text.value)?.value : undefined;
  const events = isObject(manifest) && isObject(manifest.hooks) ? Object.values(manifest.hooks) : [];
  const groups = events.flatMap((event) => (Array.isArray(event) ? (event as unknown[]) : []));
  return groups.flatMap((group) => (isObject(group) && Array.isArray(group.hooks) ? group.hooks : [])).length;
}
