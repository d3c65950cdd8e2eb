// Rows of the program itself: which ones there are, what they run on, and whether a shell finds one.

import { type Finding, worst } from '../../protocol/doctor.ts';
import {
  codexCommands,
  commandLine,
  type DoctorFacts,
  pluginCommandLine,
  shellWord,
  unseen,
} from './facts.ts';

const nodeMajorMin = 20;

/** As the README installs it; `npm unlink -g postbell` takes it away again. */
const linkLine = (directory: string): string => `(cd ${shellWord(directory)} && npm link)`;

export function install({ programs, claude, codex, version, packageDirectory }: DoctorFacts): Finding {
  const again = linkLine(packageDirectory);
  const findings = programs
    .filter(({ missing }) => missing)
    .map(
      ({ where, path }): Finding => ({
        level: 'warn',
        text: `${where} names ${path}, which is not there`,
        hint:
          where === 'PATH' ? `remove the link, or ${again}` : `let ${where} name a Postbell that is there`,
      }),
    );
  for (const { path, why } of claude.unread)
    if (!/\/settings[^/]*$/.test(path)) findings.push(unseen(`${path} ${why}`, 'let Claude Code mend it'));
  if (claude.marketplace?.missing)
    findings.push({
      level: 'warn',
      text: `Claude Code looks for the plugin in ${claude.marketplace.path}, which is not there`,
      hint: pluginCommandLine(packageDirectory),
    });
  for (const { path, why } of codex.unread)
    findings.push(unseen(`${path} ${why}`, `mend ${shellWord(path)}`));
  if (codex.marketplace?.missing)
    findings.push({
      level: 'warn',
      text: `Codex looks for the plugin in ${codex.marketplace.path}, which is not there`,
      hint: commandLine(codexCommands(packageDirectory, codex.marketplace)),
    });
  const others = programs.filter((one) => one.version !== undefined && one.version !== version);
  if (others.length > 0) {
    const said = others.map(({ where, path, version: other }) => `${other} by ${where} (${path})`);
    findings.push({
      level: 'warn',
      text: `several versions: ${version} in ${packageDirectory}, ${said.join(', ')}`,
      hint: `leave one: ${again}, and ${pluginCommandLine(packageDirectory)}`,
    });
  }
  return worst(findings, { level: 'pass', text: `one version, ${version}, in ${packageDirectory}` });
}

export function node({ node: running, sqlite, packageDirectory }: DoctorFacts): Finding {
  const rebuild = `npm rebuild better-sqlite3 in ${shellWord(packageDirectory)}, or install Postbell again`;
  const findings: Finding[] = [];
  const fail = (text: string, hint: string): void => void findings.push({ level: 'fail', text, hint });
  if (Number(running.split('.')[0]) < nodeMajorMin)
    fail(`Node ${running} is too old`, `install Node ${nodeMajorMin} or newer`);
  if (sqlite.state !== 'found') {
    fail(`the SQLite driver cannot be loaded${sqlite.state === 'closed' ? ` (${sqlite.why})` : ''}`, rebuild);
    return worst(findings, unseen('no SQLite'));
  }
  const { version, fit, fts5 } = sqlite.value;
  if (!fit) fail(`SQLite ${version} can lose writes of several processes`, rebuild);
  if (!fts5) fail(`SQLite ${version} has no full-text search (FTS5)`, rebuild);
  return worst(findings, { level: 'pass', text: `Node ${running}, SQLite ${version} with FTS5` });
}

export function shellCli({ shell, packageDirectory }: DoctorFacts): Finding {
  if (shell.state === 'closed') return unseen(shell.why, 'start a login shell and try: command -v postbell');
  return shell.state === 'found'
    ? { level: 'pass', text: `a login shell finds ${shell.value}` }
    : {
        level: 'warn',
        text: 'a login shell finds no postbell on its PATH',
        hint: linkLine(packageDirectory),
      };
}
