// A hook that notes what it was told: appends one line to the file named by its argument.
import { appendFileSync, readFileSync } from 'node:fs';

const { hook_event_name: event, source, reason, session_id: session } = JSON.parse(readFileSync(0, 'utf8'));
const line = { event, why: source ?? reason ?? '', session, host: Number(process.env.CLAUDE_PID) };
appendFileSync(process.argv[2], `${JSON.stringify(line)}\n`);
