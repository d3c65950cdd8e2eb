// What the suite runs over: a bell, the host behind it, and what that bell declares that it cannot have.

import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { channelBell } from '../../src/hosts/claude-code/channel.ts';
import { queueBell } from '../../src/hosts/codex/bell.ts';
import type { Queued } from '../../src/hosts/codex/queue.ts';
import { commitBatch, nextBatch } from '../../src/mailbox/listen.ts';
import type { Bell } from '../../src/ports/bell.ts';
import type { Store } from '../../src/ports/store.ts';
import type { HandOffState } from '../../src/protocol/states.ts';
import { locksIn } from '../../src/store/lock.ts';
import { atEnd, type Scene } from '../contract/desk.ts';
import { fixtureAcp } from './fixture-acp.ts';
import { type FixtureKind, fixtureBell } from './fixture-bell.ts';
import { FixtureHost, type Given, type Said } from './fixture-host.ts';

export interface Adapter {
  bell: Bell;
  host: FixtureHost;
  /** What it accepts by: an answer of the host, bytes that were written to it, or a row of ours. */
  evidence: 'answer' | 'bytes' | 'row';
  /** What an accepted ring is worth. */
  acceptedState: HandOffState;
  /** Every ring that reached the host, or the place where the host finds it. */
  rings(): Given[];
  /** Refuses from now on, in the way of this adapter. */
  refuse(): void;
  /** Says nothing from now on; `answer` lets it speak. */
  fallSilent(): { answer(): void };
  mend(): void;
  /** What it answers where the host knows no such method, if it has a word of its own. */
  unknownMethod?: string;
}

export type MakeAdapter = (scene: Scene, onText: (text: string) => void) => Adapter;

const thread = '01a2359b-9716-7d71-8e13-ff19cf36a487';

/** The queue bell of the product; its host is a thread that takes an item from its queue between two turns. */
export const queue: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  const answers: Record<Exclude<Said, { ok: true }>['code'], Queued> = {
    busy: { outcome: 'rejected', code: 'codex_queue_rejected', permanent: false },
    unknown_method: { outcome: 'rejected', code: 'codex_queue_process_failed', permanent: true },
    closed: { outcome: 'rejected', code: 'adapter_disconnected', permanent: true },
    invalid: { outcome: 'rejected', code: 'adapter_rejected', permanent: true },
  };
  const put = async (notice: string): Promise<Queued> => {
    const said = await host.call(notice);
    return said.ok ? { outcome: 'queued', submission_id: `item-${host.given.length}` } : answers[said.code];
  };
  return {
    bell: queueBell({ thread, queue: put }),
    ...answering(host),
    unknownMethod: 'codex_queue_process_failed',
  };
};

/** A bell of no product: what is said of notices that fail holds for every bell. */
export const fixture =
  (kind: FixtureKind): MakeAdapter =>
  (scene, onText) => {
    const host = new FixtureHost(() => scene.clock.nowMs(), onText);
    return { bell: fixtureBell(kind, host), ...answering(host) };
  };

/** Of a host that answers each ring. */
const answering = (host: FixtureHost): Omit<Adapter, 'bell'> => ({
  host,
  evidence: 'answer',
  acceptedState: 'host_queued',
  rings: () => host.given,
  refuse: () => {
    host.script = 'refuse for good';
  },
  fallSilent: () => {
    host.script = 'silent';
    return { answer: () => host.answerLate() };
  },
  mend: () => {
    host.script = 'accept';
  },
});

/** The ACP bell of the product. A turn of its host is one that a person began. */
export const acp: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  const { bell, type } = fixtureAcp(host);
  const endTurn = host.endTurn.bind(host);
  let endTyped = (): void => {};
  host.startTurn = () => {
    host.inTurn = true;
    endTyped = type();
  };
  host.endTurn = () => {
    endTurn();
    endTyped();
  };
  return {
    bell,
    ...answering(host),
  };
};

/** The channel of the product; its host reads what is written to it, and answers nothing. */
export const channel: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  const write = async (_: string, params: object): Promise<void> => {
    if (host.script === 'refuse' || host.script === 'refuse for good') throw new Error('a broken pipe');
    const said = await host.call((params as { content: string }).content);
    // A host that knows no channels drops it without a word.
    if (!said.ok && said.code !== 'unknown_method') throw new Error('a broken pipe');
  };
  return {
    bell: channelBell(write),
    host,
    evidence: 'bytes',
    acceptedState: 'notification_sent',
    rings: () => host.given,
    refuse: () => {
      host.script = 'refuse for good';
    },
    fallSilent: () => {
      host.script = 'silent';
      return { answer: () => host.answerLate() };
    },
    mend: () => {
      host.script = 'accept';
    },
  };
};

/** The listener of the product; its host is a listener that prints between two turns. */
export const listener: MakeAdapter = (scene, onText) => {
  const host = new FixtureHost(() => scene.clock.nowMs(), onText);
  let refuses = false;
  let gate: Promise<void> | undefined;
  const store: Store = {
    ...scene.store,
    write: async (work) => {
      await gate;
      if (refuses) throw new Error('the row cannot be written');
      return scene.store.write(work);
    },
  };
  const print = async (): Promise<void> => {
    for (let batch = nextBatch(scene, 's1'); batch !== undefined; batch = nextBatch(scene, 's1')) {
      if (host.inTurn || host.ignores || host.script === 'dead') return;
      if (batch.text !== undefined) host.take(batch.text);
      await commitBatch(scene, batch);
    }
  };
  const endTurn = host.endTurn.bind(host);
  host.endTurn = () => {
    endTurn();
    void print();
  };
  const locks = locksIn(scene.directory);
  const armed = (): boolean => {
    const free = locks.tryTake('listener-s1');
    free?.release();
    return free === undefined;
  };
  atEnd(scene.wake.watch(() => void print()));
  return {
    bell: listenerBell({ ...scene, store }, armed),
    host,
    evidence: 'row',
    acceptedState: 'inbox_queued',
    rings: () =>
      scene
        .rows('SELECT created_at, text FROM listener_row ORDER BY seq')
        .map((row) => ({ at: Date.parse(String(row.created_at)), text: String(row.text) })),
    refuse: () => {
      refuses = true;
    },
    fallSilent: () => {
      let open = (): void => {};
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return { answer: open };
    },
    mend: () => {
      refuses = false;
      gate = undefined;
    },
  };
};
