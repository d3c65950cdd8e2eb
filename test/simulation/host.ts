// One agent host: a session's server, its listener and its hooks, and an agent that takes turns when it is woken.

import { isRefusal } from '../../src/protocol/errors.ts';
import type { SessionView } from './checker.ts';
import { Mood } from './mood.ts';
import { portsOf } from './ports.ts';
import type { Process } from './process.ts';
import {
  callsOf,
  isAnnounced,
  noticeIn,
  runListener,
  runServer,
  runSessionStart,
  type Server,
} from './product.ts';
import type { Town } from './town.ts';

class ReaderGone extends Error {}

export class Host {
  readonly town: Town;
  readonly project: string;
  /** Shared by several sessions; absent where the session has one of its own. */
  readonly declared: string | undefined;
  pid: { pid: number; start_time: string };
  up = true;
  sessionId: string;
  /** Every id that it has had in this process. */
  readonly ids: string[];
  server: { process: Process; server: Server | undefined; session: SessionView; mood: Mood } | undefined;
  listener: Process | undefined;
  /** Once nothing fails any more its agent only keeps a listener armed. */
  idle = false;
  readonly hasBell: boolean;
  /** Nobody sits at it: its listener leaves with its server. */
  readonly unattended: boolean;
  #busy = false;
  #turnAtMs = 0;
  #wanted = false;

  constructor(
    town: Town,
    project: string,
    declared: string | undefined,
    sessionId: string,
    hasBell: boolean,
  ) {
    this.town = town;
    this.project = project;
    this.declared = declared;
    this.sessionId = sessionId;
    this.ids = [sessionId];
    this.hasBell = hasBell;
    this.unattended = town.world.dice.chance(0.2);
    this.pid = { pid: town.newPid(), start_time: '0' };
    this.#hook('startup');
    this.startServer();
    this.startListener();
  }

  get #world() {
    return this.town.world;
  }

  session(): SessionView {
    const found = this.#world.sessions.get(this.sessionId);
    if (found !== undefined) return found;
    const principal = this.declared ?? `claude-session-${this.sessionId}`;
    const session = { project: this.project, id: this.sessionId, principal };
    this.#world.sessions.set(this.sessionId, session);
    return session;
  }

  /** The host ends; a listener may outlive it for a moment. */
  die(): void {
    const { dice } = this.#world;
    this.up = false;
    if (this.server !== undefined) this.#world.kill(this.server.process);
    if (this.listener !== undefined && dice.chance(0.7)) this.#world.kill(this.listener);
    this.server = undefined;
    this.listener = undefined;
  }

  /** The session gets a new id in the same process. */
  clear(): void {
    const before = this.#world.lineage(this.sessionId);
    this.sessionId = this.town.newSession();
    this.ids.push(this.sessionId);
    before.add(this.sessionId);
    this.#world.lineages.set(this.sessionId, before);
    this.#world.tally.count('cleared');
    this.#hook('clear');
    this.startListener();
  }

  startServer(): void {
    const world = this.#world;
    if (!this.up || this.server?.process.alive) return;
    const process = world.spawn('server');
    const session = this.session();
    const mood = new Mood(world, process, this.town.hooks);
    const entry: NonNullable<Host['server']> = { process, server: undefined, session, mood };
    this.server = entry;
    const ports = portsOf(world, process, this.town.hooks.tamper);
    const onFault = this.#faultOf(process);
    world.later(process, 'server starts', world.delayMs(), () => {
      try {
        entry.server = runServer({
          ports,
          process,
          session,
          host: this.pid,
          hasBell: this.hasBell,
          ringer: mood,
          turnAtMs: () => this.#turnAtMs,
          startRouter: () => this.town.startRouter(),
          onHanded: (frame) => {
            world.tally.count('handed');
            const { attempt_id, delivery_id, connection_id, generation } = frame;
            const delivery = world.facts.deliveries.get(delivery_id);
            const before = world.facts.connections.get(connection_id)?.deliveriesBefore ?? 0;
            if (delivery !== undefined && !delivery.toSession && delivery.seq <= before)
              world.tally.count('handed, sent before the registration');
            world.judges.deed(
              {
                kind: 'handed',
                attemptId: attempt_id,
                deliveryId: delivery_id,
                connectionId: connection_id,
                generation,
                session,
              },
              process,
            );
          },
          onFault,
        });
      } catch (error) {
        onFault(error);
        process.end();
      }
    });
  }

  /** In order: the router is told. */
  endServer(): void {
    const { server, process } = this.server ?? {};
    if (server === undefined || process === undefined || !process.alive) return;
    this.#world.tally.count('server ended in order');
    this.#world.later(process, 'ends', 0, () => {
      server.close().then(
        () => process.end(),
        () => process.end(),
      );
    });
  }

  /** A second process for the same session, as when a server hangs and the host starts another. */
  replaceServer(): void {
    const old = this.server;
    this.server = undefined;
    this.startServer();
    if (old !== undefined)
      this.#world.later(undefined, 'old server ends', 30_000, () => this.#world.kill(old.process));
  }

  startListener(): void {
    const world = this.#world;
    if (!this.up || !this.hasBell) return;
    const process = world.spawn('listener');
    const ports = portsOf(world, process, this.town.hooks.tamper);
    const session = this.session();
    const host = this.pid;
    const hostAlive = (): boolean => this.up && this.pid === host;
    world.later(process, 'listener starts', world.delayMs(), () => {
      this.listener = process;
      runListener({
        ports,
        session,
        host,
        ringer: new Mood(world, process, this.town.hooks),
        hostAlive,
        unattended: this.unattended,
        print: (text) => {
          if (!hostAlive()) throw new ReaderGone();
          this.#printed(text, session.id, process);
        },
      }).then(
        (status) => this.#listenerEnded(process, status),
        (error: unknown) => {
          if (!(error instanceof ReaderGone)) this.#faultOf(process)(error);
          this.#listenerEnded(process, 1);
        },
      );
    });
  }

  /** The user says something. */
  prompt(): void {
    this.#turn();
  }

  #printed(text: string, session: string, process: Process): void {
    const notice = noticeIn(text);
    if (notice === undefined) return;
    this.#world.tally.count('printed');
    this.#world.judges.deed({ kind: 'printed', session, notice }, process);
  }

  #listenerEnded(process: Process, status: 0 | 1 | 2): void {
    const world = this.#world;
    if (!process.alive) return;
    process.end();
    if (this.listener === process) this.listener = undefined;
    if (this.idle) {
      if (this.listener === undefined)
        world.later(undefined, 'armed again', status === 2 ? 1_000 : 20_000, () => this.startListener());
    } else if (status === 2 && this.up) world.later(undefined, 'woken', world.delayMs(), () => this.#turn());
  }

  #hook(source: 'startup' | 'clear'): void {
    const world = this.#world;
    const process = world.spawn('hook');
    const ports = portsOf(world, process, this.town.hooks.tamper);
    const start = { session_id: this.sessionId, source };
    const host = this.pid;
    world.later(process, `session starts (${source})`, world.delayMs(), () => {
      runSessionStart(ports, host, start)
        .catch(this.#faultOf(process))
        .finally(() => process.end());
    });
  }

  /** Reads, takes in what it will, and arms a listener at its end. */
  #turn(): void {
    const world = this.#world;
    if (!this.up || this.idle) return;
    if (this.#busy) {
      this.#wanted = true;
      return;
    }
    this.#busy = true;
    this.#turnAtMs = world.timeline.elapsedMs;
    const { server } = this;
    if (server?.server !== undefined)
      world.later(server.process, 'reads', world.dice.below(400), () => this.#read(server.process, server));
    world.later(undefined, 'turn ends', world.dice.between(500, 3_000), () => {
      this.#busy = false;
      this.startListener();
      if (!this.#wanted) return;
      this.#wanted = false;
      this.#turn();
    });
  }

  #read(process: Process, { server, session }: NonNullable<Host['server']>): void {
    if (server === undefined) return;
    const world = this.#world;
    try {
      const caller = server.caller();
      const calls = callsOf(server.desk, caller);
      const limit = world.dice.chance(0.2) ? 3 : 20;
      const answer = calls.receive(this.project, limit);
      if (isRefusal(answer)) return;
      const messageIds = answer.messages.map((message) => message.message_id);
      const { remaining } = answer;
      const view = { ...session, id: caller.session };
      world.judges.deed({ kind: 'received', caller: view, messageIds, limit, remaining }, process);
      if (world.dice.chance(0.1)) this.#takeInOfAnother(process, server);
      const taken = messageIds.filter(() => world.dice.chance(0.85));
      if (world.dice.chance(0.2)) taken.push(...this.town.someKnown(3).map((scope) => scope.message_id));
      if (taken.length > 0)
        world.later(process, 'takes in', world.dice.below(800), () => this.#takeIn(process, server, taken));
    } catch (error) {
      this.#faultOf(process)(error);
    }
  }

  /** A confused agent records intake of mail that may be meant for another; the answer is the product's. */
  #takeInOfAnother(process: Process, server: Server): void {
    const caller = server.caller();
    for (const scope of this.town.someKnown(2)) {
      const messageIds = [scope.message_id];
      this.#world.judges.deed(
        { kind: 'asked', call: 'consume', session: caller.session, messageIds },
        process,
      );
      callsOf(server.desk, caller).intake(scope, 'confused').catch(this.#faultOf(process));
    }
  }

  #takeIn(process: Process, server: Server, messageIds: readonly string[]): void {
    const world = this.#world;
    Promise.resolve()
      .then(() => {
        const caller = server.caller();
        world.judges.deed({ kind: 'asked', call: 'consume', session: caller.session, messageIds }, process);
        return callsOf(server.desk, caller).acknowledge(this.project, messageIds);
      })
      .then((answer) => {
        if (isRefusal(answer)) return;
        world.tally.count('taken in', answer.acknowledged);
        const refused = new Set(answer.refused.map((key) => key.msg_id));
        const done = messageIds.filter((id) => !refused.has(id));
        if (answer.unchanged === 0)
          world.judges.deed({ kind: 'answered', call: 'consume', messageIds: done }, process);
      })
      .catch(this.#faultOf(process));
  }

  faulted(process: Process, error: unknown): void {
    this.#faultOf(process)(error);
  }

  #faultOf(process: Process): (error: unknown) => void {
    return (error) => {
      if (isAnnounced(error)) this.#world.tally.count(`fault ${(error as { code: string }).code}`);
      else this.#world.defect(process, error);
    };
  }
}
