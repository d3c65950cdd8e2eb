// The records of companions in `runtime/`: who accompanies which thread, and what to do about one that is there already. A
// companion's socket has a name of its own, so that what somebody left behind is never in the way, and never removed by mistake.

import { lstatSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { sha256Hex } from '../crypto/hash.ts';
import { systemClock } from '../platform/clock.ts';
import { askPrivately, inodeOf, removeSocket } from '../platform/control.ts';
import { readPrivateFile, replacePrivateFile } from '../platform/files.ts';
import type { Places } from '../platform/paths.ts';
import { appendLine } from '../platform/private-log.ts';
import { isAlive, startTime } from '../platform/processes.ts';
import {
  type CompanionHeard,
  type CompanionRecord,
  type CompanionVerb,
  readCompanionRecord,
} from '../protocol/companion.ts';
import { Fault } from '../protocol/errors.ts';
import { checkSocket } from '../router/socket-owner.ts';

/** How long a companion is waited for that must make room: less than the hook waits, which says what came of it. */
const makeRoomMs = 1_100;
const askWaitMs = 700;
const lookMs = 20;

export class Companions {
  readonly #places: Pick<Places, 'runtime' | 'companionLog'>;
  readonly #thread: string;
  readonly #stem: string;

  constructor(places: Pick<Places, 'runtime' | 'companionLog'>, thread: string) {
    this.#places = places;
    this.#thread = thread.toLowerCase();
    // Short: a socket's path has 103 bytes at most.
    this.#stem = `codex-${sha256Hex(this.#thread).slice(0, 12)}`;
  }

  get #file(): string {
    return path.join(this.#places.runtime, `${this.#stem}.json`);
  }

  /** For a socket of one companion. */
  socketFile(random: string): string {
    return path.join(this.#places.runtime, `${this.#stem}-${random}.sock`);
  }

  /** Undefined where there is none, or none that can be read: then nothing accounts for a socket. */
  read(): CompanionRecord | undefined {
    const text = readPrivateFile(this.#file);
    return text === undefined ? undefined : readCompanionRecord(text);
  }

  write(record: CompanionRecord): void {
    replacePrivateFile(this.#file, `${JSON.stringify(record)}\n`);
  }

  /** Unless another companion has written its own by now, or a socket stays that nothing else would account for. */
  forget(token: string): boolean {
    if (this.read()?.token !== token || this.#sockets().length > 0) return false;
    rmSync(this.#file, { force: true });
    return true;
  }

  /**
   * Makes room for a new companion: one that runs is asked to go, what a dead one left is removed. Fault `companion_busy` where
   * one does not go, or a socket lies there that no record accounts for.
   * @param nudge has one look around that cannot be asked, since its socket is gone
   * @returns sockets that stay, for the next record to account for
   */
  async makeRoom(nudge: () => void): Promise<string[]> {
    const record = this.read();
    if (record !== undefined) await this.#end(record, nudge);
    const known = [record?.socket, ...(record?.former ?? [])];
    const there = this.#sockets();
    const foreign = there.find((file) => !known.includes(file));
    if (foreign !== undefined) throw busy(`${foreign} is of no companion on record`);
    return there;
  }

  /** The session has ended, in this workspace. */
  async tellEnd(workspace: string): Promise<CompanionHeard> {
    const record = this.read();
    if (record === undefined) return 'none';
    if (runs(record)) return tell(record, { verb: 'end', workspace });
    this.#clean(record, 'at the end of its session');
    return 'none';
  }

  /** What the session works on, for its companion to show. */
  async tellSummary(text: string): Promise<CompanionHeard> {
    const record = this.read();
    if (record === undefined || !runs(record)) return 'none';
    return tell(record, { verb: 'summary', text });
  }

  /** A log that cannot be written, as on a full disk, ends nothing. */
  log(text: string): void {
    const at = new Date(systemClock.nowMs()).toISOString();
    try {
      appendLine(this.#places.companionLog, `${at} ${this.#thread} ${text}`);
    } catch {
      // nobody could be told
    }
  }

  /** Of this thread. */
  #sockets(): string[] {
    return readdirSync(this.#places.runtime)
      .filter((name) => name.startsWith(`${this.#stem}-`) && name.endsWith('.sock'))
      .map((name) => path.join(this.#places.runtime, name));
  }

  async #end(record: CompanionRecord, nudge: () => void): Promise<void> {
    if (!runs(record)) return this.#clean(record, 'at a start');
    const untilMs = systemClock.elapsedMs() + makeRoomMs;
    if ((await tell(record, { verb: 'replace' })) === 'unheard') nudge();
    while (runs(record)) {
      if (systemClock.elapsedMs() > untilMs) throw busy(`the companion ${record.pid} does not make room`);
      await new Promise<void>((resolve) => void systemClock.after(lookMs, resolve));
    }
    this.#clean(record, 'when it had made room');
  }

  /** Its socket only where that is known to be its own. */
  #clean({ pid, token, socket, inode }: CompanionRecord, when: string): void {
    // The record last: killed between the two it would leave a socket that nothing accounts for.
    const removed = inode !== undefined && removeSocket(socket, inode);
    const forgotten = this.forget(token);
    const left = !removed && inodeOf(socket) !== undefined;
    if (removed || left)
      this.log(
        `companion ${pid} had ended without a word; its record was ${forgotten ? 'removed' : 'kept for a socket that stays'} ${when}`,
      );
  }
}

const busy = (why: string): Fault => new Fault('companion_busy', why);

const runs = ({ pid, start_time }: CompanionRecord): boolean => isAlive(pid) && startTime(pid) === start_time;

/** What a companion answers that did what it was asked, and one that did not. */
export const answers = { heard: '{"ok":true}', declined: '{"ok":false}' } as const;

/** The token goes only to a socket of this account alone. Fault `insecure_path`. */
async function tell({ socket, token }: CompanionRecord, verb: CompanionVerb): Promise<CompanionHeard> {
  if (lstatSync(socket, { throwIfNoEntry: false }) === undefined) return 'unheard';
  checkSocket(socket);
  const answer = await askPrivately(socket, JSON.stringify({ token, ...verb }), systemClock, askWaitMs);
  if (answer === answers.heard) return 'heard';
  return answer === answers.declined ? 'declined' : 'unheard';
}
