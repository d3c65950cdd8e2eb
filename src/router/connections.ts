// The live registrations of this router, and the hand-offs that wait for a host's outcome. A cache: the store holds
// what counts.

import type { Socket } from 'node:net';
import type { Clock } from '../ports/clock.ts';
import type { ConnectionRow } from '../ports/presence.ts';
import { writeFrame } from '../protocol/frames.ts';
import type { ConnectionKey } from '../protocol/session.ts';
import type { HandOff, HostOutcome } from '../sessions/switchboard.ts';
import type { FrameRate } from './rate.ts';

/** A client on the socket; after `register` it is a session's process. */
export interface Peer {
  socket: Socket;
  connection: (ConnectionKey & { project: string; session_id: string; lease_ms: number }) | undefined;
  /** The last of its frames that change who it is. */
  turn: Promise<unknown>;
  /** Of its register, heartbeat and discover frames. */
  rate: FrameRate;
}

/** Far more than any answer: who lets so much pile up reads nothing. */
const unreadBytesMax = 4_194_304;

/** Frames of one turn of the event loop, as the answers of a shared commit are, leave by one system call. */
export function writeTo({ socket }: Peer, frame: Readonly<Record<string, unknown>>): void {
  if (socket.destroyed) return;
  if (socket.writableCorked === 0) {
    socket.cork();
    process.nextTick(() => socket.uncork());
  }
  socket.write(writeFrame(frame));
  if (socket.writableLength > unreadBytesMax) socket.destroy();
}

interface Waiting {
  connectionId: string;
  deliveryId: string;
  settle: (outcome: HostOutcome) => void;
}

export class Connections {
  readonly #clock: Clock;
  readonly #outcomeWaitMs: number;
  readonly #peers = new Map<string, Peer>();
  /** By attempt. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(clock: Clock, outcomeWaitMs: number) {
    this.#clock = clock;
    this.#outcomeWaitMs = outcomeWaitMs;
  }

  get size(): number {
    return this.#peers.size;
  }

  all(): Peer[] {
    return [...this.#peers.values()];
  }

  add(connectionId: string, peer: Peer): void {
    this.#peers.set(connectionId, peer);
  }

  /** Its hand-offs end unanswered. */
  remove(connectionId: string): Peer | undefined {
    const peer = this.#peers.get(connectionId);
    if (peer !== undefined) peer.connection = undefined;
    this.#peers.delete(connectionId);
    for (const entry of this.#waiting.values())
      if (entry.connectionId === connectionId) entry.settle({ outcome: 'disconnected' });
    return peer;
  }

  /** Tells the process of a replaced session that it has been; it gets nothing more. */
  supersede(replaced: ConnectionRow): void {
    const peer = this.remove(replaced.connection_id);
    if (peer === undefined) return;
    const { connection_id, generation } = replaced;
    writeTo(peer, { type: 'session_superseded', request_id: connection_id, connection_id, generation });
  }

  hand(connection: ConnectionRow, handOff: HandOff): Promise<HostOutcome> {
    const { connection_id, generation } = connection;
    const peer = this.#peers.get(connection_id);
    if (peer === undefined) return Promise.resolve({ outcome: 'disconnected' });
    const request_id = handOff.attempt_id;
    return new Promise((resolve) => {
      const settle = (outcome: HostOutcome): void => {
        cancel();
        this.#waiting.delete(request_id);
        resolve(outcome);
      };
      const cancel = this.#clock.after(this.#outcomeWaitMs, () => settle({ outcome: 'timeout' }));
      this.#waiting.set(request_id, { connectionId: connection_id, deliveryId: handOff.delivery_id, settle });
      writeTo(peer, {
        type: 'deliver',
        request_id,
        ...handOff,
        connection_id,
        generation,
        untrusted_payload: true,
      });
    });
  }

  /** Whether a hand-off was still waiting for this outcome. */
  settle(
    of: { attempt_id: string; delivery_id: string; connection_id: string },
    outcome: HostOutcome,
  ): boolean {
    const entry = this.#waiting.get(of.attempt_id);
    const fits = entry?.connectionId === of.connection_id && entry.deliveryId === of.delivery_id;
    if (fits) entry.settle(outcome);
    return fits;
  }
}
