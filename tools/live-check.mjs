// `npm run live-check -- --host claude [--channel] [--out FILE] [--keep] [--patience SECONDS]`: the owner of a logged-in Claude
// Code sees whether one session of it, started for this, is woken by a message and answers it.
// `--host codex --codex-home DIR`: the same for one thread of Codex, also when it is resumed and when it has ended.
// Run at a terminal, never in CI; with a data directory of its own, which is removed at the end.

import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { checkClaude, claudeVersion } from './live-claude.mjs';
import { checkCodex, codexVersion, disposableHome, reminderOf } from './live-codex.mjs';
import { makeHome, openTerminal, Refused, remove, unwritable, writeReport } from './live-desk.mjs';
import { asText } from './live-report.mjs';
import { postbellIn, program, root } from './live-session.mjs';

function flagsOf(words) {
  if (words.some((word) => /^(-p|--print)(=|$)/.test(word)))
    throw new Refused('print mode is refused: nobody sits at such a session; start an interactive one');
  let values;
  try {
    const text = { type: 'string' };
    const flag = { type: 'boolean', default: false };
    const options = {
      host: text,
      channel: flag,
      'codex-home': text,
      out: text,
      keep: flag,
      patience: { ...text, default: '300' },
    };
    ({ values } = parseArgs({ args: words, options }));
  } catch (error) {
    throw new Refused(error.message.split('\n')[0]);
  }
  const { host, channel, 'codex-home': codexHome, out } = values;
  if (host !== 'claude' && host !== 'codex')
    throw new Refused('name the host: --host claude, or --host codex --codex-home DIR');
  if (host === 'codex' && channel) throw new Refused('--channel is for --host claude alone');
  if (host === 'claude' && codexHome !== undefined)
    throw new Refused('--codex-home is for --host codex alone');
  if (!/^[1-9]\d{0,3}$/.test(values.patience)) throw new Refused('--patience takes 1 to 9999 seconds');
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true)
    throw new Refused('this check is run by its owner at a terminal, and there is none');
  if (out !== undefined) {
    const wrong = unwritable(out);
    if (wrong !== undefined) throw new Refused(`--out cannot be written: ${wrong}`);
  }
  if (!existsSync(program)) throw new Refused('the program is not built: npm run build');
  return { ...values, codexHome, patienceMs: Number(values.patience) * 1_000 };
}

function versionsWith(host) {
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const platform = `${process.platform} ${process.arch} ${release()}`;
  return { postbell: version, node: process.versions.node, host, platform };
}

/** Looks at the host before anything is made. */
async function hostOf(flags) {
  if (flags.host === 'claude') return { check: checkClaude, version: await claudeVersion() };
  const codexHome = await disposableHome(flags.codexHome);
  return { check: checkCodex, codexHome, version: await codexVersion(codexHome) };
}

async function main(words) {
  const flags = flagsOf(words);
  const { check, codexHome, version } = await hostOf(flags);
  try {
    return await perform({ ...flags, codexHome }, check, versionsWith(version));
  } finally {
    if (codexHome !== undefined) process.stdout.write(`${reminderOf(codexHome)}\n`);
  }
}

async function perform(flags, check, versions) {
  const home = await makeHome();
  const terminal = openTerminal();
  try {
    const report = await check(terminal, { flags, home, versions });
    terminal.say(`\n${asText(report)}`);
    if (flags.out !== undefined) writeReport(flags.out, report);
    if (flags.out !== undefined) terminal.say(`The report is ${flags.out}, for your eyes.`);
    return report.result === 'passed' ? 0 : 1;
  } finally {
    terminal.close();
    await postbellIn(home).command(['router', 'stop']);
    const left = flags.keep ? `Kept: ${home}` : remove(home, !terminal.gaveUp());
    if (left !== undefined) terminal.say(left);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`live-check: ${error instanceof Refused ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
