// Two machines and a relay in networks of their own, and lines between them that go dead without a word to anybody: no connection is
// closed, and what nobody answered may have arrived.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from './home.ts';
import { factsAt, type Machine, openMachine, pairByDialogue } from './machines.ts';
import { openPlacesApart, type PlacesApart } from './places-apart.ts';

let places: PlacesApart;
let alice: Machine;
let bob: Machine;
const opened: Machine[] = [];
beforeEach(async () => {
  places = await openPlacesApart();
  console.log(`the places: ${places.what}`);
  [alice, bob] = [await machine('alice'), await machine('bob')];
  await pairByDialogue(alice, bob);
});
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.end();
  await places.end();
});

async function machine(name: 'alice' | 'bob'): Promise<Machine> {
  const made = await openMachine(name, places.origin, { within: places.within(name) });
  opened.push(made);
  await made.startRouter();
  return made;
}

interface Sent {
  from: Machine;
  scope: Parameters<typeof factsAt>[1];
}

async function send(from: Machine, to: Machine, text: string): Promise<Sent> {
  const words = ['send', 'reader', '--peer', to.name, '--project', 'x', '--json'];
  return { from, scope: (await from.ask(words, text)) as unknown as Sent['scope'] };
}

/** To each from the other. */
async function sendBothWays(texts: readonly string[]): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (const text of texts)
    sent.push(...(await Promise.all([send(alice, bob, text), send(bob, alice, text)])));
  return sent;
}

const numbered = (what: string, count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `${what}, ${nth}`);

/** What has come of a peer. */
const came = (at: Machine): string[] =>
  at
    .rows<{ payload: string }>('SELECT payload FROM message WHERE peer_key IS NOT NULL')
    .map(({ payload }) => JSON.parse(payload) as string)
    .toSorted();

const facts = ({ from, scope }: Sent) => factsAt(from, scope);

/** Once each sender was told so. @returns all that it was told, of each message; a receipt may come before the relay's own answer */
async function allStored(sent: readonly Sent[]): Promise<string[][]> {
  const of = () => Promise.all(sent.map(facts));
  await until(
    'each is told to be stored',
    async () => (await of()).every(({ state }) => state === 'receiver_stored'),
    60_000,
  );
  return (await of()).map(({ kinds }) => kinds.toSorted());
}

/**
 * Each is stored, once, where nobody reads. Beside it stands the relay that took it, unless its receiver's word came before the
 * relay's own, which nothing waits for then.
 */
function expectStored(told: readonly string[][]): void {
  for (const kinds of told) {
    expect(kinds.filter((kind) => kind !== `relay_accept ${places.origin}`)).toEqual(['stored unknown']);
    expect(kinds.length).toBeLessThanOrEqual(2);
  }
}

describe('two machines and a relay, each in a place of its own', () => {
  it('what waits on both sides while their lines are dead is said to wait, and arrives once they are mended, each once', async () => {
    const [before, during] = [numbered('before', 3), numbered('during', 5)];
    const early = await sendBothWays(before);
    await allStored(early);

    places.cut();
    const late = await sendBothWays(during);
    const lastErrors = async ({ ask }: Machine) =>
      ((await ask(['inbox', 'pending', '--json'])).pending as { last_error: string | null }[]).map(
        ({ last_error }) => last_error,
      );
    // What was asked on connections that were open has been waited for in vain.
    await until(
      'a side sees that the relay does not answer',
      async () => [...(await lastErrors(alice)), ...(await lastErrors(bob))].some((one) => one !== null),
      45_000,
    );
    for (const one of late) expect(await facts(one)).toMatchObject({ state: 'pending', kinds: [] });
    for (const at of [alice, bob]) expect(came(at)).toEqual(before);

    places.mend();
    const told = await allStored([...early, ...late]);
    for (const at of [alice, bob]) expect(came(at)).toEqual([...before, ...during]);
    expect(told).toHaveLength(16);
    expectStored(told);
  }, 120_000);

  it('what a relay took, and could not say so, is sent again by a router that was killed meanwhile, and is there once', async () => {
    const first = await send(alice, bob, 'the first');
    await allStored([first]);

    // On a connection that is open: no other can be made now.
    places.mute();
    const second = await send(alice, bob, 'the second');
    const arrived = () => came(bob).includes('the second') || places.relay.items() > 0;
    await until('it has arrived', arrived);
    expect(await facts(second)).toMatchObject({ state: 'pending', kinds: [] });
    await alice.killRouter();

    places.mend();
    await alice.startRouter();
    expectStored(await allStored([first, second]));
    expect(came(bob)).toEqual(['the first', 'the second']);
  }, 120_000);
});
