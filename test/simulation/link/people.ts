// What people and agents do: each deed is a process of its own that asks, is answered and ends, or dies on the way. Whether two
// people have compared the code is taken for granted; strangers are admitted by nobody.

import { acknowledge } from '../../../src/mailbox/acknowledge.ts';
import type { Caller, Desk } from '../../../src/mailbox/desk.ts';
import { dispose } from '../../../src/mailbox/dispose.ts';
import { receive } from '../../../src/mailbox/receive.ts';
import { discoverPeer } from '../../../src/peers/discover.ts';
import { showIdentity } from '../../../src/peers/identity.ts';
import { accept } from '../../../src/peers/pairing/accept.ts';
import { ask } from '../../../src/peers/pairing/ask.ts';
import { reject } from '../../../src/peers/pairing/reject.ts';
import { remove } from '../../../src/peers/pairing/remove.ts';
import { requests } from '../../../src/peers/pairing/requests.ts';
import { discard } from '../../../src/peers/pending.ts';
import { type PeerSendAnswer, sendToPeer } from '../../../src/peers/send.ts';
import { RelayFailure } from '../../../src/ports/relay.ts';
import { Fault, isRefusal } from '../../../src/protocol/errors.ts';
import type { SendRequest } from '../../../src/protocol/requests.ts';
import { Leases } from '../../../src/sessions/leases.ts';
import { register } from '../../../src/sessions/register.ts';
import type { Process } from '../process.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Ports } from './ports.ts';
import type { LinkWorld } from './world.ts';

const project = 'shop';
const leaseMs = 300_000;
const minuteMs = 60_000;

type Letter = SendRequest & { peer: string };

const sessionOf = ({ name }: Machine): string => `s-${name}`;

const agentOf = (machine: Machine): Caller & { session: string } => ({
  transport: 'mcp',
  source_host: 'claude-code',
  session: sessionOf(machine),
  principal: machine.name,
});

export class People {
  readonly #world: LinkWorld;
  readonly #network: Network;
  /** Addresses that people gave each other; old ones lead nowhere. */
  readonly #addresses = new Map<Machine, string>();
  /** What was sent last from each machine, to be sent once more under its key. */
  readonly #letters = new Map<Machine, Letter>();
  #count = 0;

  constructor(world: LinkWorld, network: Network) {
    this.#world = world;
    this.#network = network;
  }

  /** One of the deeds, by somebody. */
  act(): void {
    const { dice, machines } = this.#world;
    const machine = dice.pick(machines);
    const deeds = {
      send: 40,
      'send again': 6,
      read: 20,
      pair: 8,
      decide: 14,
      discard: 2,
      remove: 2,
      attend: 6,
      'new door': 1,
      discover: 2,
    } as const;
    const deed = dice.weighted<keyof typeof deeds>(deeds);
    if (deed === 'send') this.send(machine);
    else if (deed === 'send again') this.#sendAgain(machine);
    else if (deed === 'read') this.read(machine);
    else if (deed === 'pair') this.pair(machine, this.#other(machine), dice.chance(0.8));
    else if (deed === 'decide') this.decide(machine, dice.chance(0.9) ? 'accept' : 'reject');
    else if (deed === 'discard') this.#discard(machine);
    else if (deed === 'remove') this.#remove(machine);
    else if (deed === 'attend') this.#attend(machine);
    else if (deed === 'new door') this.#newDoor(machine);
    else this.#discover(machine);
  }

  send(machine: Machine): void {
    const { dice } = this.#world;
    const [peer] = machine.peers.length > 0 ? [dice.pick(machine.peers)] : [];
    const to = this.#world.machines.find(({ key }) => key === peer?.key);
    if (peer === undefined || to === undefined) return;
    this.#count += 1;
    const toSession = dice.chance(0.3);
    const task = dice.chance(0.3);
    const expiresMs = dice.chance(0.15) ? dice.between(2 * minuteMs, 40 * minuteMs) : undefined;
    const letter: Letter = {
      project,
      peer: peer.name,
      sender: machine.name,
      recipient: toSession ? sessionOf(to) : to.name,
      ...(toSession && { target_kind: 'session' as const }),
      payload: `letter ${this.#count} ${'x'.repeat(dice.chance(0.05) ? 30_000 : dice.below(300))}`,
      idempotency_key: `key-${this.#count}`,
      ...(task && { task_id: `t-${dice.below(3)}`, status: dice.chance(0.2) ? 'canceled' : 'update' }),
      ...(expiresMs !== undefined && { expires_at: new Date(machine.nowMs() + expiresMs).toISOString() }),
    };
    this.#letters.set(machine, letter);
    this.#post(machine, letter);
  }

  #sendAgain(machine: Machine): void {
    const letter = this.#letters.get(machine);
    if (letter !== undefined) this.#post(machine, letter);
  }

  #post(machine: Machine, letter: Letter): void {
    this.#run(machine, `sends ${letter.idempotency_key}`, async (ports) => {
      const sent = await sendToPeer(this.#desk(machine, ports), letter, agentOf(machine));
      if (isRefusal(sent)) return this.#world.tally.count(`send refused: ${sent.code}`);
      const { message_id, peer } = sent as PeerSendAnswer;
      const key = machine.peers.find(({ name }) => name === peer)?.key ?? '';
      this.#world.did(machine, { kind: 'sent', key: letter.idempotency_key, messageId: message_id, to: key });
    });
  }

  /** The agent takes in what waits, says so, and sometimes what becomes of it. */
  read(machine: Machine): void {
    const caller = agentOf(machine);
    this.#run(machine, 'reads', async (ports) => {
      const desk = this.#desk(machine, ports);
      const got = receive(desk, { project, limit: 20 }, caller);
      if (isRefusal(got) || got.messages.length === 0) return;
      const done = await acknowledge(
        desk,
        { project, messages: got.messages.map(({ receipt }) => ({ ...receipt })) },
        caller,
      );
      if (isRefusal(done)) return;
      this.#world.did(machine, { kind: 'read', messageIds: got.messages.map((one) => one.message_id) });
      const { dice } = this.#world;
      const [first] = got.messages;
      if (first === undefined || dice.chance(0.5)) return;
      const value = dice.pick(['accepted', 'completed', 'rejected'] as const);
      const { recipient, message_id } = first;
      const request = { project, recipient, message_id, value, idempotency_key: `d-${dice.below(3)}` };
      const disposed = await dispose(desk, request, caller);
      if (!isRefusal(disposed)) this.#world.did(machine, { kind: 'disposed', messageId: message_id });
    });
  }

  /** Asks under the address that the other one gave, perhaps long ago. */
  pair(machine: Machine, other: Machine | undefined, fresh = true): void {
    if (other === undefined) return;
    this.#run(other, 'shows its address', async (ports, process) => {
      const shown = await showIdentity(other.pairing(process, ports), { newDoor: false });
      if (!isRefusal(shown) && shown.address !== null) this.#addresses.set(other, shown.address);
    });
    const old = this.#addresses.get(other);
    this.#world.later(undefined, 'asks', fresh ? 2_000 : 0, () => {
      const target = fresh ? this.#addresses.get(other) : old;
      if (target === undefined) return;
      this.#run(machine, `asks ${other.name}`, async (ports, process) => {
        const known = machine.peers.find(({ key }) => key === other.key)?.name;
        const answer = await ask(machine.pairing(process, ports), { target, name: known ?? other.name });
        if (!isRefusal(answer)) this.#world.did(machine, { kind: 'asked', key: other.key });
      });
    });
  }

  decide(machine: Machine, how: 'accept' | 'reject'): void {
    this.#run(machine, `${how}s`, async (ports, process) => {
      const ground = machine.pairing(process, ports);
      const shown = await requests(ground, { byOperator: true });
      if (isRefusal(shown)) return;
      for (const { key } of shown.requests) {
        const from = this.#world.machines.find((one) => one.key === key);
        if (from === undefined || how === 'reject') {
          await reject(ground, key);
          continue;
        }
        const name = machine.peers.find((peer) => peer.key === key)?.name ?? from.name;
        const answer = await accept(ground, { key, name });
        if (isRefusal(answer)) this.#world.tally.count(`accept refused: ${answer.code}`);
        else this.#world.did(machine, { kind: 'accepted', key });
      }
    });
  }

  #discard(machine: Machine): void {
    this.#run(machine, 'discards', async (ports) => {
      const open = ports.store.read((tx) => tx.outbox.open(50));
      if (open.length === 0) return;
      const { message_id } = this.#world.dice.pick(open);
      this.#world.did(machine, { kind: 'discarding', messageId: message_id });
      await discard(ports, message_id);
    });
  }

  #remove(machine: Machine): void {
    const { dice } = this.#world;
    const rotate = dice.chance(0.6);
    if (machine.peers.length === 0) return;
    const { key } = dice.pick(machine.peers);
    this.#run(machine, rotate ? 'removes and rotates' : 'removes', async (ports, process) => {
      const removed = await remove(machine.pairing(process, ports), { name: key, rotate });
      if (!isRefusal(removed)) this.#world.tally.count(rotate ? 'rotated' : 'removed');
    });
  }

  /** A session registers, so that cards list it for a while. */
  #attend(machine: Machine): void {
    this.#run(machine, 'attends', async (ports, process) => {
      const board = {
        ...ports,
        leases: new Leases(),
        instance: process.name,
        hostOutcomeWaitMs: 10_000,
        hand: () => Promise.resolve({ outcome: 'disconnected' as const }),
      };
      const session_id = sessionOf(machine);
      await register(board, {
        project,
        principal_id: machine.name,
        session_id,
        adapter_kind: 'claude-listener',
        bell: 'listener',
        host_kind: 'claude',
        lease_ms: leaseMs,
      });
    });
  }

  #newDoor(machine: Machine): void {
    this.#run(machine, 'makes a new door', async (ports, process) => {
      await showIdentity(machine.pairing(process, ports), { newDoor: true });
    });
  }

  #discover(machine: Machine): void {
    const [peer] = machine.peers;
    if (peer === undefined) return;
    this.#run(machine, 'discovers', async (ports, process) => {
      await discoverPeer(this.#desk(machine, ports, process), { peer: peer.name, project });
    });
  }

  #other(machine: Machine): Machine | undefined {
    const others = this.#world.machines.filter(({ key }) => key !== machine.key);
    return others.length === 0 ? undefined : this.#world.dice.pick(others);
  }

  #desk(machine: Machine, ports: Ports, process?: Process): Desk {
    const { relays, account } = machine;
    const away = (): never => {
      throw new Fault('router_unreachable', 'no router is asked here');
    };
    const link = process && {
      relays,
      client: async (origin: string) => this.#network.clientAt(machine, process, origin, machine.identity),
    };
    return {
      ...ports,
      account,
      router: { notify: async () => away(), discover: async () => away() },
      ...(link !== undefined && { link }),
    };
  }

  #run(machine: Machine, label: string, work: (ports: Ports, process: Process) => Promise<void>): void {
    const world = this.#world;
    const process = world.spawn('command', machine.name);
    world.later(process, label, 0, () => {
      Promise.resolve()
        .then(() => work(machine.ports(process), process))
        .catch((error: unknown) => {
          const announced = error instanceof Fault && error.code !== 'internal_error';
          if (!announced && !(error instanceof RelayFailure)) world.defect(process.name, error);
          world.tally.count('commands that failed');
        })
        .finally(() => process.end());
    });
  }
}
