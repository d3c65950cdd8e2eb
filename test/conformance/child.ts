// A process of the suite's own: the session of a fixture host, composed as the product composes one. Its host is a file
// that it appends to. It ends with its input, as a server that a host started does.

import { appendFileSync } from 'node:fs';
import { endOnSignal, endReplaced } from '../../src/compose/ending.ts';
import { type Local, openLocal } from '../../src/compose/local.ts';
import { listenerBell } from '../../src/hosts/claude-code/bell.ts';
import { channelBell } from '../../src/hosts/claude-code/channel.ts';
import { runNotifier } from '../../src/mailbox/notifier.ts';
import { ringForHandOff } from '../../src/mailbox/ring.ts';
import type { Bell } from '../../src/ports/bell.ts';
import { Attachment } from '../../src/router/attachment.ts';
import { fixtureAcp } from './fixture-acp.ts';
import { type FixtureKind, fixtureBell, type HostCalls } from './fixture-bell.ts';

const [kind = 'listener', host = '', attached = ''] = process.argv.slice(2);

/** Short, so that a scene can see it run out. */
const leaseMs = 2_000;

const onFault = (error: unknown): void => void process.stderr.write(`${String(error)}\n`);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Says each ring, so that the scene knows whose it was. */
function heard(bell: Bell): Bell {
  return {
    ...bell,
    ring: async (item, abort) => {
      const outcome = await bell.ring(item, abort);
      if (outcome.outcome === 'accepted') say(`rang ${Date.now()}`);
      return outcome;
    },
  };
}

function bellOf(local: Local, calls: HostCalls): Bell {
  if (kind === 'listener') return listenerBell(local);
  if (kind === 'acp') return fixtureAcp(calls).bell;
  if (kind !== 'channel') return fixtureBell(kind as FixtureKind, calls);
  return channelBell(async (_, params) => void (await calls.call((params as { content: string }).content)));
}

async function run(): Promise<void> {
  const local = await openLocal();
  const calls = {
    inTurn: false,
    call: async (text: string) => {
      appendFileSync(host, `${JSON.stringify(text)}\n`);
      // A host that never answers: the scene kills this process in the midst of its ring.
      if (process.argv.includes('silent')) await new Promise(() => {});
      return { ok: true } as const;
    },
  };
  const bell = heard(bellOf(local, calls));
  const caller = { transport: 'mcp', source_host: 'fixture', session: 's1', principal: 'bob' } as const;
  const ringing = { caller, project: 'shop' };
  const notifier = runNotifier(local, local.locks, ringing, bell, onFault);
  const { bell: name, adapterKind, hostKind } = bell.describe();
  const attachment =
    attached !== 'attached'
      ? undefined
      : new Attachment({
          ...local,
          registration: {
            project: 'shop',
            principal_id: 'bob',
            session_id: 's1',
            adapter_kind: adapterKind,
            bell: name,
            host_kind: hostKind,
            lease_ms: leaseMs,
          },
          startRouter: () => {},
          endRouter: () => '',
          take: async (handOff) => {
            const outcome = await ringForHandOff(local, ringing, bell, handOff, onFault);
            if (outcome.outcome === 'unknown') return undefined;
            if (outcome.outcome === 'rejected') return { failure_code: outcome.code };
            return { content: outcome.content, receipt: outcome.receipt };
          },
          onReplaced: () => endReplaced(end),
          onFault,
        });
  const end = endOnSignal(async () => {
    notifier.stop();
    bell.close('its host has gone');
    await attachment?.close();
    local.close();
  });
  process.stdin.on('end', end);
  process.stdin.resume();
  say(`ready ${process.pid}`);
}

void run();
