// The live view: sessions, mail and receipts as they happen. At a terminal one screen that is drawn again; without
// one, plain lines.

import type { Desk } from '../../mailbox/desk.ts';
import { failureLine } from '../../protocol/errors.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { isLive } from '../../protocol/session.ts';
import { abroadLines, type RelayLine } from './abroad.ts';
import { feedLine, type NameOfKey, shortProject } from './lines.ts';

export interface Screen {
  isTerminal: boolean;
  columns(): number;
  rows(): number;
  write(text: string): void;
}

export interface LiveViewOptions {
  desk: Pick<Desk, 'store' | 'clock' | 'wake' | 'account'>;
  /** How the relays stand, as far as this process knows. */
  relays?: () => readonly RelayLine[];
  nameOf?: NameOfKey;
  screen: Screen;
  /** Lines that stand at the top, anew at each drawing. */
  head(): string[];
  /** What a new user needs next, with commands to copy; stands until the store has a message. */
  next: string[];
}

const keptMax = 500;
const sessionsMax = 12;
const inboxesMax = 4;
const showCursor = '\u001b[?25h';
const hideCursor = '\u001b[?25l';
const alternateScreen = '\u001b[?1049h';
const mainScreen = '\u001b[?1049l';
const clear = '\u001b[H\u001b[2J';

/** Runs until the returned function is called. */
export function liveView({ desk, nameOf, relays, screen, head, next }: LiveViewOptions): () => void {
  const { store, clock, wake } = desk;
  let position = store.read((tx) => tx.feed.end());
  const kept: string[] = [];
  let begun = position.message > 0;
  let cancelTick = (): void => {};

  const read = (): void => {
    for (;;) {
      const since = store.read((tx) => tx.feed.since(position));
      position = since.position;
      begun ||= since.items.some((item) => item.kind === 'message');
      const lines = since.items.map((item) => feedLine(item, nameOf));
      kept.push(...lines);
      kept.splice(0, Math.max(kept.length - keptMax, 0));
      if (!screen.isTerminal) for (const line of lines) screen.write(`${line}\n`);
      if (since.items.length === 0) break;
    }
    if (screen.isTerminal) draw();
  };

  /** A store that cannot be read now is said, and asked again. */
  const look = (): void => {
    try {
      read();
    } catch (error) {
      screen.write(`${screen.isTerminal ? clear : ''}${failureLine(error, false)}`);
    }
  };

  const draw = (): void => {
    const columns = screen.columns();
    const abroad = abroadLines(desk, relays?.() ?? []);
    const top = [...head(), '', ...sessionLines(desk), ...waitingLines(desk), ...abroad, ''].map((line) =>
      cut(line, columns),
    );
    // Not cut: half a command does something else.
    const steps = begun ? [] : [...next, ''];
    const taken = steps.reduce(
      (rows, line) => rows + Math.max(Math.ceil(line.length / columns), 1),
      top.length,
    );
    const room = Math.max(screen.rows() - taken - 1, 3);
    const events = kept.slice(-room).map((line) => cut(line, columns));
    screen.write(`${clear}${[...top, ...steps, ...events].join('\r\n')}`);
  };

  const tick = (): void => {
    cancelTick = clock.after(limits.wakeTickMs, tick);
    look();
  };

  if (screen.isTerminal) screen.write(`${alternateScreen}${hideCursor}`);
  else screen.write(`${[...head(), '', ...(begun ? [] : [...next, ''])].join('\n')}\n`);
  const unwatch = wake.watch(look);
  tick();
  return () => {
    cancelTick();
    unwatch();
    if (screen.isTerminal) screen.write(`${showCursor}${mainScreen}`);
  };
}

function sessionLines({ store, clock }: LiveViewOptions['desk']): string[] {
  const nowMs = clock.nowMs();
  const sessions = store.read((tx) => tx.sessions.open().filter((row) => isLive(row, nowMs)));
  if (sessions.length === 0) return ['No session is connected.'];
  const rows = sessions.map(
    (row) =>
      `  ${quoted(row.principal_id)}  session ${quoted(row.session_id)}  bell ${row.bell}  in ${shortProject(row.project)}`,
  );
  return [
    `${sessions.length} live session${sessions.length === 1 ? '' : 's'}:`,
    ...rows.slice(0, sessionsMax),
    ...(rows.length > sessionsMax ? [`  and ${rows.length - sessionsMax} more`] : []),
  ];
}

/** For whom mail waits: also for names that nobody has. */
function waitingLines({ store }: LiveViewOptions['desk']): string[] {
  const inboxes = store.read((tx) => tx.waiting.inboxes(inboxesMax + 1));
  const named = inboxes.map(
    (row) => `  ${quoted(row.recipient)}  in ${shortProject(row.project)}  ${row.waiting}`,
  );
  if (inboxes.length === 0) return [];
  return ['Mail waits:', ...named.slice(0, inboxesMax), ...(named.length > inboxesMax ? ['  and more'] : [])];
}

/** Control characters of names are quoted already; a line is cut to the screen, and says so. */
function cut(line: string, columns: number): string {
  const characters = Array.from(line);
  return characters.length <= columns ? line : `${characters.slice(0, columns - 1).join('')}…`;
}
