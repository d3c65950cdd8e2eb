import { pino } from 'pino';
import type { Log } from '../ports/log.ts';
import { say } from './stderr.ts';

/** JSON lines on stderr. Fields never hold payloads, tokens or credentials. */
export function stderrLog(level: 'info' | 'warn'): Log {
  const logger = pino({ level, base: { pid: process.pid } }, { write: say });
  return {
    info: (event, fields) => logger.info(fields ?? {}, event),
    warn: (event, fields) => logger.warn(fields ?? {}, event),
  };
}
