// An asyncRewake hook: waits for the file named by its argument, then wakes the host (exit 2) with its text.
// A killed host leaves its hooks running, so it looks after its host as well.
import { existsSync, readFileSync, rmSync } from 'node:fs';

const [file] = process.argv.slice(2);
const host = Number(process.env.CLAUDE_PID);

function hostLives() {
  try {
    return process.kill(host, 0);
  } catch {
    return false;
  }
}

setInterval(() => {
  if (existsSync(file)) {
    process.stderr.write(readFileSync(file, 'utf8'));
    rmSync(file);
    process.exit(2);
  }
  if (!hostLives()) process.exit(0);
}, 50);
