// Reads the first word and loads the one bundle that it needs.

const [word, ...rest] = process.argv.slice(2);
const helpAsked = rest.includes('--help');

async function start(): Promise<void> {
  if (!helpAsked && word === 'mcp') return (await import('./compose/mcp.ts')).main(rest);
  if (!helpAsked && word === 'wait') return (await import('./compose/wait.ts')).main(rest);
  if (!helpAsked && word === 'hook') return (await import('./compose/hook.ts')).main(rest);
  if (!helpAsked && word === 'host') return startHost();
  // Detached by a hook; no word for a person.
  if (word === 'companion') return (await import('./compose/companion.ts')).main();
  // Every word goes to Claude Code, --help too.
  if (word === 'claude') return (await import('./compose/claude.ts')).main(rest);
  if (!helpAsked && word === 'router') return (await import('./compose/router.ts')).main(rest);
  if (!helpAsked && word === 'relay') return (await import('./compose/relay.ts')).main(rest);
  if (!helpAsked && word === 'up') return (await import('./compose/up.ts')).main(rest);
  if (!helpAsked && word === 'doctor') return (await import('./compose/doctor.ts')).main(rest);
  if (!helpAsked && word === 'demo') return (await import('./compose/demo.ts')).main(rest);
  if (!helpAsked && (word === 'peer' || word === 'identity'))
    return (await import('./compose/peer.ts')).main(process.argv.slice(2));
  // The listener's flags may stand before its word.
  if (!helpAsked && rest.includes('wait') && word?.startsWith('--'))
    return (await import('./compose/wait.ts')).main([word, ...rest.filter((one) => one !== 'wait')]);
  return (await import('./compose/cli.ts')).main(process.argv.slice(2));
}

/** Each runner loads the library of its own host and no other. */
async function startHost(): Promise<void> {
  if (rest[0] === 'acp') return (await import('./compose/acp.ts')).main(rest);
  if (rest[0] === 'codex') return (await import('./compose/codex.ts')).main(rest);
  return (await import('./compose/host.ts')).main(rest);
}

// A hook's host goes on.
const failed = word === 'hook' ? 0 : 1;
const nodeMajor = Number(process.versions.node.split('.')[0]);
if (nodeMajor < 20) {
  process.stderr.write(`postbell: Node ${process.versions.node} is too old; at least 20\n`);
  process.exitCode = failed;
} else {
  // A program that is there and cannot be loaded.
  start().catch((error: Error) => {
    process.stderr.write(`postbell: the program cannot be loaded (${error.name}); install it again\n`);
    process.exitCode = failed;
  });
}
