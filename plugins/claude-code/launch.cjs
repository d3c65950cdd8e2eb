// Finds the program and becomes it: POSTBELL_BIN, else the package this plugin lies in, else PATH. Where there is
// none, a hook ends with exit 0 and no output, so that nothing is blocked; the server says so in one line.
'use strict';

const { accessSync, constants, realpathSync } = require('node:fs');
const path = require('node:path');

function candidates() {
  const named = process.env.POSTBELL_BIN;
  const inPackage = path.join(__dirname, '..', '..', 'dist', 'postbell.cjs');
  const onPath = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  return [...(named ? [named] : []), inPackage, ...onPath.map((folder) => path.join(folder, 'postbell'))];
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
  process.argv[1] = program;
  require(program);
} else if (process.argv[2] === 'mcp') {
  process.stderr.write('postbell: the program was not found; set POSTBELL_BIN to its dist/postbell.cjs\n');
  process.exitCode = 1;
}
