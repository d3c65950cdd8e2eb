// Two machines and a relay that reach one another over lines that a test can cut: a network namespace each, with lines that meet at a
// bridge in the relay's, where this machine lets a test make them; else addresses of loopback. Whichever it is, a line that is cut
// closes no connection and tells nobody.

import { execFileSync } from 'node:child_process';
import { openRelay, type RelayProcess } from './machines.ts';
import { alive } from './postbell.ts';
import { openLine } from './silent-line.ts';

export interface PlacesApart {
  /** What they are, for the output. */
  what: string;
  relay: RelayProcess;
  /** Of the relay, as the machines are told it. */
  origin: string;
  /** Words before a command of the machine, so that it runs there. */
  within(machine: MachineName): readonly string[];
  /** Nothing passes between the machines and the relay, in either direction. */
  cut(): void;
  /** What alice says still reaches the relay, and no answer comes back; bob fares alike where the two have one line. */
  mute(): void;
  /** After either. */
  mend(): void;
  end(): Promise<void>;
}

type MachineName = (typeof machines)[number];

const machines = ['alice', 'bob'] as const;
const relayAddress = '10.77.0.1';
const addressOf = (machine: MachineName): string => `10.77.0.${machines.indexOf(machine) + 2}`;

const ip = (words: string): void => void execFileSync('ip', words.split(' '), { stdio: 'pipe' });

/** Of this process alone, so that runs side by side do not meet. */
const namespaceOf = (place: string): string => `pb-${process.pid}-${place}`;
const within = (place: string): string[] => ['ip', 'netns', 'exec', namespaceOf(place)];

export async function openPlacesApart(): Promise<PlacesApart> {
  const why = makeNamespaces();
  return why === undefined ? overNamespaces() : overLoopback(why);
}

/** @returns why there are none */
function makeNamespaces(): string | undefined {
  const relay = namespaceOf('relay');
  try {
    removeLeft();
    for (const place of ['relay', ...machines]) ip(`netns add ${namespaceOf(place)}`);
    ip(`-n ${relay} link add bridge type bridge`);
    ip(`-n ${relay} address add ${relayAddress}/24 dev bridge`);
    ip(`-n ${relay} link set bridge up`);
    for (const name of machines) {
      const own = namespaceOf(name);
      ip(`-n ${own} link add line type veth peer name ${name} netns ${relay}`);
      ip(`-n ${own} address add ${addressOf(name)}/24 dev line`);
      ip(`-n ${own} link set line up`);
      ip(`-n ${relay} link set ${name} master bridge up`);
      // To run in one takes more rights than to make it.
      ip(`netns exec ${own} true`);
    }
    return undefined;
  } catch (error) {
    removeNamespaces();
    const { stderr, message } = error as Error & { stderr?: Buffer };
    return (stderr?.toString('utf8').trim() || message).split('\n')[0];
  }
}

/** With them go their lines. Whatever still runs in one keeps it alive, without a name. */
function removeNamespaces(): void {
  for (const place of ['relay', ...machines]) {
    try {
      ip(`netns delete ${namespaceOf(place)}`);
    } catch {
      // There is none of that name.
    }
  }
}

/** Those of a run that was killed. */
function removeLeft(): void {
  const list = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  for (const [name, pid] of list.matchAll(/^pb-(\d+)-\w+/gm))
    if (!alive(Number(pid))) ip(`netns delete ${name}`);
}

async function overNamespaces(): Promise<PlacesApart> {
  const relayPlace = namespaceOf('relay');
  const muted = `blackhole ${addressOf('alice')}`;
  const lines = (state: 'up' | 'down'): void => {
    for (const machine of machines) ip(`-n ${relayPlace} link set ${machine} ${state}`);
  };
  let isMuted = false;
  const at = { within: within('relay'), host: relayAddress, flags: ['--insecure-http'] };
  const relay = await openRelay(at).catch((error: unknown) => {
    removeNamespaces();
    throw error;
  });
  return {
    what: `network namespaces, with the relay at ${relay.origin}`,
    relay,
    origin: relay.origin,
    within,
    cut: () => lines('down'),
    mute: () => {
      ip(`-n ${relayPlace} route add ${muted}`);
      isMuted = true;
    },
    mend: () => {
      if (isMuted) ip(`-n ${relayPlace} route delete ${muted}`);
      isMuted = false;
      lines('up');
    },
    end: async () => {
      try {
        await relay.end();
      } finally {
        removeNamespaces();
      }
    },
  };
}

async function overLoopback(why: string): Promise<PlacesApart> {
  const relay = await openRelay();
  const { hostname, port } = new URL(relay.origin);
  const line = await openLine({ host: hostname, port: Number(port) });
  return {
    ...line,
    what: `loopback, for namespaces cannot be made here: ${why}`,
    relay,
    within: () => [],
    end: async () => {
      await line.end();
      await relay.end();
    },
  };
}
