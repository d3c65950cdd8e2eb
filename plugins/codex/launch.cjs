// Finds the program and becomes it: POSTBELL_BIN, else the package this plugin lies in, else PATH, else where the host
// installed the plugin from, else where the server found it last. Where there is none, a hook ends with exit 0 and no output, so that nothing is blocked; the server says
// so in one line.
'use strict';

const { accessSync, constants, readFileSync, realpathSync, writeFileSync } = require('node:fs');
const path = require('node:path');

/** In the plugin's own data folder, which outlives its updates. */
const record = process.env.CLAUDE_PLUGIN_DATA && path.join(process.env.CLAUDE_PLUGIN_DATA, 'program');

function recorded() {
  try {
    return record ? [readFileSync(record, 'utf8')] : [];
  } catch {
    return [];
  }
}

function remember(program) {
  try {
    if (record && recorded()[0] !== program) writeFileSync(record, program);
  } catch {
    // the next start tries again
  }
}

/** Codex runs a copy of the plugin, and keeps in its config.toml which folder it was taken from. */
function installedFrom() {
  const home = path.join(__dirname, '..', '..', '..', '..', '..');
  try {
    const config = readFileSync(path.join(home, 'config.toml'), 'utf8');
    const [, section = ''] = /^\[marketplaces\.postbell\]\s*$([^[]*)/m.exec(config) ?? [];
    const [, quoted, literal] = /^source\s*=\s*(?:("(?:[^"\\]|\\.)*")|'([^']*)')\s*$/m.exec(section) ?? [];
    const folder = literal ?? (quoted && JSON.parse(quoted));
    return folder && path.isAbsolute(folder) ? [path.join(folder, 'dist', 'postbell.cjs')] : [];
  } catch {
    return [];
  }
}

function candidates() {
  const named = process.env.POSTBELL_BIN;
  const inPackage = path.join(__dirname, '..', '..', 'dist', 'postbell.cjs');
  const onPath = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  return [
    ...(named ? [named] : []),
    inPackage,
    ...onPath.map((folder) => path.join(folder, 'postbell')),
    ...installedFrom(),
    ...recorded(),
  ];
}

function find() {
  for (const file of candidates()) {
    try {
      accessSync(file, constants.R_OK);
      const real = realpathSync(file);
      if (/\.c?js$/.test(real)) return real;
    } catch {
      // the next one
    }
  }
  return undefined;
}

const program = find();
if (program !== undefined) {
  if (process.argv[2] === 'mcp') remember(program);
  process.argv[1] = program;
  try {
    require(program);
  } catch (error) {
    process.stderr.write(`postbell: ${program} cannot be loaded (${error.name}); install it again\n`);
    process.exitCode = process.argv[2] === 'hook' ? 0 : 1;
  }
} else if (process.argv[2] === 'mcp') {
  process.stderr.write('postbell: the program was not found; set POSTBELL_BIN to its dist/postbell.cjs\n');
  process.exitCode = 1;
}
