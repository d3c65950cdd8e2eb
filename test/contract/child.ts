// What a process of the tests does: one verb on one store, said in lines.

import { once } from 'node:events';
import path from 'node:path';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import type { Desk } from '../../src/mailbox/desk.ts';
import { send } from '../../src/mailbox/send.ts';
import { untilTouched } from '../../src/mailbox/until-touched.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { policyFileAt } from '../../src/platform/policy-file.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { fileWake } from '../../src/platform/wake.ts';
import type { Store, Tx } from '../../src/ports/store.ts';
import { describeError, isRefusal } from '../../src/protocol/errors.ts';
import type { SendRequest } from '../../src/protocol/requests.ts';
import { locksIn, takeFile } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/open.ts';

const [verb, place = '', text = ''] = process.argv.slice(2);

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const openHere = (): Promise<Store> => openStore({ path: place, clock: systemClock, random: systemRandom });

/** Says that it is ready, and goes on when it is told to. */
async function ready(): Promise<void> {
  say('ready');
  await once(process.stdin, 'data');
}

const deskOver = (store: Store): Desk => ({
  store,
  clock: systemClock,
  random: systemRandom,
  wake: { touch: () => {}, watch: () => () => {} },
  router: { notify: async () => ({ delivered: false }), discover: async () => [] },
});

const rowsIn = (store: Store): number => store.read((tx) => tx.feed.end().listener_row);
const appendRow = (tx: Tx): void =>
  tx.listener.append({ session_id: 's1', notification_id: 'n1', text: 'a row', created_at: 'now' });

const verbs: Record<string, () => Promise<void>> = {
  /** Makes the store, perhaps beside others. */
  open: async () => {
    await ready();
    const store = await openHere();
    say(`seq ${store.read((tx) => tx.feed.end().message)}`);
    store.close();
  },
  /** Opens, writes and closes, again and again. */
  churn: async () => {
    await ready();
    for (let round = 0; round < Number(text); round += 1) {
      const store = await openHere();
      await store.write((tx) => tx.identity.link(`n${process.pid}-${round}`, 'old'));
      store.read((tx) => tx.identity.chain('old'));
      store.close();
    }
    say('done');
  },
  send: async () => {
    const store = await openHere();
    await ready();
    const request = JSON.parse(text) as SendRequest;
    const answer = await send(deskOver(store), request, { transport: 'cli', source_host: 'cli' });
    say(isRefusal(answer) ? answer.code : answer.message_id);
    store.close();
  },
  acknowledge: async () => {
    const store = await openHere();
    await ready();
    const request = { project: 'shop', recipient: 'bob', messages: JSON.parse(text) as unknown[] };
    const answer = await acknowledge(deskOver(store), request, { transport: 'cli', source_host: 'cli' });
    say(isRefusal(answer) ? answer.code : String(answer.acknowledged));
    store.close();
  },
  /** Sends as many letters to its own inbox and to one that others share, and acknowledges each of its own. */
  busy: async () => {
    const store = await openHere();
    const desk = deskOver(store);
    const own = `inbox-${process.pid}`;
    const caller = { transport: 'cli', source_host: 'cli' } as const;
    await ready();
    for (let nth = 0; nth < Number(text); nth += 1) {
      const letter = { project: 'shop', sender: own, payload: `${own} ${nth}` };
      const both = [own, 'bob'].map((recipient) =>
        send(desk, { ...letter, recipient, idempotency_key: `${recipient} ${nth}` }, caller),
      );
      const [sent] = await Promise.all(both);
      if (isRefusal(sent) || sent === undefined) throw new Error('refused');
      const messages = [{ sender: 'local', msg_id: sent.message_id }];
      const done = await acknowledge(desk, { project: 'shop', recipient: own, messages }, caller);
      if (isRefusal(done) || done.acknowledged !== 1) throw new Error('not acknowledged');
    }
    say(own);
    store.close();
  },
  /** Says how many rows there are whenever that changes, by touches alone, or also on a tick. */
  watch: async () => {
    const store = await openHere();
    const wake = fileWake(path.join(path.dirname(place), 'runtime', 'mail'));
    let seen = -1;
    const look = (): undefined => {
      const count = rowsIn(store);
      if (count !== seen) say(String(count));
      seen = count;
    };
    if (text === 'ticking') await untilTouched({ store, clock: systemClock, wake }, 60_000, look);
    wake.watch(look);
    look();
    await once(process.stdin, 'data');
  },
  /** Commits as many rows more, each with its touch. */
  commit: async () => {
    const store = await openHere();
    const wake = fileWake(path.join(path.dirname(place), 'runtime', 'mail'));
    for (let n = 0; n < Number(text); n += 1) {
      await store.write(appendRow);
      wake.touch();
    }
    say('committed');
    store.close();
  },
  /** Is killed between its commit and its touch. */
  dieUntouched: async () => {
    const store = await openHere();
    await store.write(appendRow);
    process.kill(process.pid, 'SIGKILL');
    await once(process.stdin, 'data');
  },
  /** Stays inside a write transaction. */
  hold: async () => {
    const store = await openHere();
    await store.write((tx) => {
      tx.listener.append({ session_id: 's1', notification_id: 'n1', text: 'half', created_at: 'now' });
      process.stdout.write('holding\n');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
    });
  },
  /** Writes the owner's file again and again, with every second peer of many or without. */
  owners: async () => {
    const names = JSON.parse(text) as [string, string][];
    const takeLock = (lockFile: string) => takeFile(lockFile);
    const file = policyFileAt(place, { clock: systemClock, takeLock });
    say('ready');
    for (;;)
      for (const [name, key] of names) {
        await file.add({ name, key });
        await file.remove(key);
      }
  },
  /** Holds the lock `text` in the directory. */
  lock: async () => {
    const lock = locksIn(place).tryTake(text);
    say(lock === undefined ? 'taken' : 'held');
    if (lock !== undefined) await once(process.stdin, 'data');
  },
};

const run = verbs[verb ?? ''];
if (run === undefined) throw new Error(`no such verb: ${verb}`);
run().then(
  () => process.exit(0),
  (error: unknown) => {
    const { code, message } = describeError(error);
    process.stderr.write(`${code}: ${message}\n`);
    process.exit(1);
  },
);
