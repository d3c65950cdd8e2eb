// Every limit once: what it is, and that a caller meets it there and not one earlier or later.

import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { acknowledge } from '../../src/mailbox/acknowledge.ts';
import { history } from '../../src/mailbox/history.ts';
import { poll } from '../../src/mailbox/poll.ts';
import { receive } from '../../src/mailbox/receive.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { checkSocketPath } from '../../src/platform/paths.ts';
import { type Fault, isRefusal } from '../../src/protocol/errors.ts';
import { type Fields, readFields } from '../../src/protocol/fields.ts';
import { readRequest } from '../../src/protocol/frames.ts';
import { limits } from '../../src/protocol/limits.ts';
import * as requests from '../../src/protocol/requests.ts';
import { isSessionId } from '../../src/protocol/scope.ts';
import { discover } from '../../src/sessions/discover.ts';
import { commands } from '../../src/surfaces/cli/commands.ts';
import { readText } from '../../src/surfaces/cli/input.ts';
import { readPayload } from '../../src/surfaces/hooks/input.ts';
import { alice, attach, ok, openScene, post, posted, type Scene, sessionCaller } from './desk.ts';

type Name = keyof typeof limits;

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

/** The answer to something so long, large or many: `taken`, or the code it is refused with. */
type Answer = string;
const answerOf = (result: unknown): Answer => (isRefusal(result) ? result.code : 'taken');
const field =
  (fields: Fields, name: string, rest: object, make: (n: number) => unknown) =>
  (n: number): Answer =>
    answerOf(readFields(fields, { ...rest, [name]: make(n) }));
const astral = (n: number): string => '\u{1f426}'.repeat(n);
const whole = (n: number): number => n;
const inbox = { project: 'shop', recipient: 'bob' };
const one = { ...inbox, message_id: 'm' };
const recorded = { ...one, idempotency_key: 'k' };
const letter = { ...inbox, sender: 'alice', idempotency_key: 'k', payload: 'x' };

const frame = (type: string, fields: object): Answer =>
  answerOf(readRequest(JSON.stringify({ v: 1, request_id: 'r', hops: 0, type, ...fields })).frame);
const registering = (over: object): Answer =>
  frame('register', {
    auth_token: 't',
    project: 'shop',
    principal_id: 'bob',
    session_id: 's1',
    adapter_kind: 'poll',
    bell: 'none',
    host_kind: 'other',
    postbell_version: '0.1.0',
    ...over,
  });

const receipts = (n: number): object[] =>
  Array.from({ length: n }, (_, index) => ({ sender: 'local', msg_id: `m${index}` }));

/** Bytes of a hook's input that names its session, filled up with blanks. */
async function hookInput(bytes: number): Promise<Answer> {
  const text = '{"session_id":"s1"}';
  const { session_id } = await readPayload(() => Readable.from([Buffer.from(text.padEnd(bytes))]), {
    clock: systemClock,
  });
  return session_id === 's1' ? 'taken' : 'ignored';
}

function socketPath(bytes: number): Answer {
  try {
    checkSocketPath(`/${'\u00e9'.repeat((bytes - 1) >> 1)}${'x'.repeat((bytes - 1) & 1)}`);
    return 'taken';
  } catch (error) {
    return (error as Fault).code;
  }
}

const invalid = 'invalid_request';
const { sendFields, pollFields, discoverFields, receiveFields, historyFields } = requests;

/** What a caller can pass: the limit, the code beyond it, and each place where it holds. */
const most: [Name, number, string, Record<string, (n: number) => Answer | Promise<Answer>>][] = [
  [
    'payloadBytesMax',
    65_536,
    'payload_too_large',
    { text: async (n) => answerOf(await post(desk, { payload: 'x'.repeat(n - 2) })) },
  ],
  [
    'payloadDepthMax',
    200,
    invalid,
    {
      json: async (n) =>
        answerOf(
          await post(desk, {
            content_type: 'application/json',
            payload: JSON.parse('['.repeat(n) + ']'.repeat(n)),
          }),
        ),
    },
  ],
  [
    'nameCharactersMax',
    200,
    invalid,
    {
      project: field(pollFields, 'project', inbox, astral),
      recipient: field(pollFields, 'recipient', inbox, astral),
      intended: field(sendFields, 'intended_session', letter, astral),
      sender: field(sendFields, 'sender', letter, astral),
      key: field(sendFields, 'idempotency_key', letter, astral),
      peer: field(historyFields, 'peer', inbox, astral),
    },
  ],
  [
    'sessionIdCharactersMax',
    128,
    'no session id',
    { id: (n) => (isSessionId(astral(n)) ? 'taken' : 'no session id') },
  ],
  [
    'idCharactersMax',
    255,
    invalid,
    {
      message: field(requests.fetchFields, 'message_id', one, astral),
      correlation: field(sendFields, 'correlation_id', letter, astral),
      reply: field(sendFields, 'reply_to', letter, astral),
      task: field(sendFields, 'task_id', letter, astral),
      status: field(requests.statusFields, 'msg_id', {}, astral),
      receipt: async (n) =>
        answerOf(
          await acknowledge(desk, { ...inbox, messages: [{ sender: 'local', msg_id: astral(n) }] }, alice),
        ),
    },
  ],
  ['cursorCharactersMax', 160, invalid, { cursor: field(pollFields, 'cursor', inbox, astral) }],
  [
    'detailCharactersMax',
    1_000,
    invalid,
    {
      disposition: field(requests.dispositionFields, 'detail', { ...recorded, value: 'accepted' }, astral),
      activation: field(requests.activationFields, 'detail', { ...recorded, value: 'woken' }, astral),
      cancel: field(requests.cancelFields, 'reason', { ...inbox, task_id: 't' }, astral),
    },
  ],
  ['pollCountMax', 100, invalid, { poll: field(pollFields, 'limit', inbox, whole) }],
  [
    'discoverCountMax',
    100,
    invalid,
    { discover: field(discoverFields, 'limit', { project: 'shop' }, whole) },
  ],
  [
    'receiveCountMax',
    100,
    invalid,
    {
      receive: field(receiveFields, 'limit', inbox, whole),
      history: field(historyFields, 'limit', { ...inbox, peer: 'alice' }, whole),
    },
  ],
  [
    'acknowledgeCountMax',
    100,
    invalid,
    { receipts: async (n) => answerOf(await acknowledge(desk, { ...inbox, messages: receipts(n) }, alice)) },
  ],
  ['pollWaitMsMax', 30_000, invalid, { poll: field(pollFields, 'wait_ms', inbox, whole) }],
  ['replyWaitMsMax', 30_000, invalid, { tool: field(sendFields, 'reply_wait_ms', letter, whole) }],
  [
    'commandReplyWaitMsMax',
    300_000,
    invalid,
    { command: field(commands['message send']?.fields as Fields, 'reply_wait_ms', letter, whole) },
  ],
  [
    'workSummaryCharactersMax',
    200,
    'invalid_field',
    { register: (n) => registering({ work_summary: astral(n) }) },
  ],
  ['leaseMsMax', 300_000, 'invalid_field', { register: (n) => registering({ lease_ms: n }) }],
  ['frameHopsMax', 4, 'hop_limit', { any: (n) => registering({ hops: n }) }],
  ['socketPathBytesMax', 103, 'socket_path_too_long', { path: socketPath }],
  ['hookInputBytesMax', 16_777_216, 'ignored', { hook: hookInput }],
];

const places = most.flatMap(([name, max, code, asked]) =>
  Object.entries(asked).map(([place, ask]) => ({ name, max, code, place, ask })),
);

/** Where a call that passes no number is answered with so many of one more. */
const defaults: [Name, number, () => Promise<unknown[]>][] = [
  ['pollCountDefault', 20, async () => ok(await poll(desk, inbox)).events],
  ['receiveCountDefault', 20, async () => ok(receive(desk, inbox, alice)).messages],
  [
    'receiveCountDefault',
    20,
    async () => ok(await history(desk, { ...inbox, peer: 'alice' }, alice)).messages,
  ],
  ['discoverCountDefault', 50, async () => discover(desk, { project: 'shop' })],
  [
    'elsewhereCountMax',
    5,
    async () => ok(receive(desk, { project: 'empty' }, sessionCaller('s0'))).elsewhere,
  ],
];

/** Met by another way than one argument; the test that meets it, which writes the number. */
const elsewhere: Partial<Record<Name, [number: string, file: string]>> = {
  nativeEnvelopeBytesMax: ['16_384', 'contract/whole.test.ts'],
  pairRequestsMax: ['64', 'contract/pairing.test.ts'],
  pairRequestKeptMs: ['7 days', 'contract/pairing.test.ts'],
  pairAskedMax: ['128', 'contract/pairing.test.ts'],
  pairAskedKeptMs: ['21 days', 'contract/pairing.test.ts'],
  controlJobsMax: ['128', 'contract/control-jobs.test.ts'],
  controlKeptMs: ['7 days', 'contract/control-jobs.test.ts'],
  controlRetryMsMin: ['2 s', 'contract/control-jobs.test.ts'],
  controlRetryMsMax: ['300_000', 'contract/control-jobs.test.ts'],
  pairingNoticeEveryMs: ['59_999', 'contract/pairing-notices.test.ts'],
  pairingNoticeAgainMs: ['300_000', 'contract/pairing-notices.test.ts'],
  sourceHostCharactersMax: ['65', 'process/source-host.test.ts'],
  adapterReceiptBytesMax: ['16_385', 'contract/router.test.ts'],
  hopsMax: ['31', 'contract/loop-guard.test.ts'],
  automaticCountMax: ['30', 'contract/loop-guard.test.ts'],
  automaticWindowMs: ['ten minutes', 'contract/loop-guard.test.ts'],
  handOffsPendingMax: ['64', 'contract/router.test.ts'],
  frameBytesMax: ['65_537', 'contract/wires.test.ts'],
  framesPerMinuteMax: ['120', 'contract/wires.test.ts'],
  versionHoldMs: ['600_000', 'contract/versions.test.ts'],
  acceptedRemembered: ['1_024', 'contract/attachment.test.ts'],
  writeLockWaitMs: ['5 s', 'contract/locked.test.ts'],
  hostOutcomeWaitMsMin: ['100', 'contract/router.test.ts'],
  hostOutcomeWaitMsMax: ['600_000', 'contract/router.test.ts'],
  answerPayloadCharactersMax: ['524_288', 'contract/long-answers.test.ts'],
  failuresMax: ['64', 'contract/failed.test.ts'],
  listenerBatchRowsMax: ['64', 'contract/listen.test.ts'],
  listenerBatchBytesMax: ['262_144', 'contract/listen.test.ts'],
  listenerRenewSecondsMax: ['3001', 'process/wait.test.ts'],
  logBytesMax: ['65_536', 'process/hooks.test.ts'],
  gateLedgerIdsMax: ['2_001', 'contract/stop-gate.test.ts'],
  privateFileBytesMax: ['longest names', 'contract/stop-gate.test.ts'],
  gateWaitMs: ['2_900', 'contract/stop-gate.test.ts'],
  reminderProjectsMax: ['p6', 'contract/reminders.test.ts'],
  reminderCharactersMax: ['4_000', 'contract/reminders.test.ts'],
  waitingPage: ['501', 'contract/reminders.test.ts'],
  ancestryMax: ['7', 'contract/channel-flag.test.ts'],
  hostConfigBytesMax: ['65_537', 'contract/host-config.test.ts'],
  printsPerMinuteMax: ['sixth', 'contract/listener-rules.test.ts'],
  noticeBytesMax: ['noticeBytesMax', 'conformance/suite.case.ts'],
  codexNoticeBytesMax: ['12_289', 'contract/codex-queue.test.ts'],
  codexQueueWaitMs: ['30_000', 'contract/codex-queue.test.ts'],
  codexQueueAttemptsMax: ['three', 'contract/codex-queue.test.ts'],
  codexQueueGapMs: ['2_000', 'contract/codex-queue.test.ts'],
  codexQueueWindowMs: ['46_500', 'hosts/codex/window.test.ts'],
  companionWaitMs: ['5 s', 'process/codex-server.test.ts'],
  pathCharactersMax: ['4_097', 'process/codex-server.test.ts'],
  acpAnswerWaitMs: ['9_999', 'contract/acp-bell.test.ts'],
  channelUnansweredMax: ['third', 'contract/channel-bell.test.ts'],
  releaseEveryMs: ['20_000', 'contract/release.test.ts'],
  releaseWindowMs: ['30', 'contract/release.test.ts'],
  releasesAtOnceMax: ['four', 'contract/release.test.ts'],
  linkRecordsMax: ['4_096', 'peers/bounds.test.ts'],
  linkRecordBytesMax: ['33_554_432', 'peers/bounds.test.ts'],
  signedForMs: ['86_400_001', 'peers/gate.test.ts'],
  signedAheadMs: ['60_001', 'peers/gate.test.ts'],
  replayIdsMax: ['4_096', 'peers/gate.test.ts'],
  peerFactsMax: ['64', 'peers/mail.test.ts'],
};

const pairing = (Object.keys(limits) as Name[]).filter((name) =>
  /^(pair|control|confirmation|policy|identity)/.test(name),
);

/** Nothing that a caller passes meets these: they are how long or how much Postbell itself takes at a time. */
const inner: Name[] = [
  'unarmedMsMax',
  'drainBatch',
  'exactSessionWaitMs',
  'routerCallWaitMs',
  'hookInputWaitMs',
  'hookProjectWaitMs',
  'hookStoreWaitMs',
  'answerBytesMax',
  'ringsShown',
  'leaseMsDefault',
  'hostOutcomeWaitMs',
  'notifierGraceMs',
  'wakeTickMs',
  'ancestryWaitMs',
  'acpStartWaitMs',
  'acpToolsWaitMs',
  'releaseAskMs',
  'outboxCountMax',
  'pendingCountMax',
  'outboxBytesMax',
  'peerExpiryMs',
  'peerExpiryMsMin',
  'peerExpiryMsMax',
  'peerLiveMs',
  'peerAwayMs',
  'peerLongAwayMs',
  ...pairing,
];

describe('the limits', () => {
  it('are each in one of the tables', () => {
    const named = [...most, ...defaults].map(([name]) => name);
    const listed = new Set([...named, ...Object.keys(elsewhere), ...inner]);
    expect([...listed].toSorted()).toEqual(Object.keys(limits).toSorted());
    for (const [number, file] of Object.values(elsewhere))
      expect(readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8')).toContain(number);
  });

  it.each(places)('hold at $max and not beyond: $name, $place', async ({ name, max, code, ask }) => {
    expect(limits[name]).toBe(max);
    expect([await ask(max - 1), await ask(max), await ask(max + 1)]).toEqual(['taken', 'taken', code]);
  });

  it.each(defaults)('answer so many where no number is given: %s, %d', async (name, count, ask) => {
    expect(limits[name]).toBe(count);
    for (let nth = 1; nth <= count + 1; nth += 1) {
      await posted(desk, { project: name === 'elsewhereCountMax' ? `project ${nth}` : 'shop' });
      await attach(desk, `s${nth}`, { principal_id: `principal ${nth}` });
    }
    expect(await ask()).toHaveLength(count);
  });

  it.each([
    [pollFields, 'limit', inbox, 1],
    [discoverFields, 'limit', { project: 'shop' }, 1],
    [receiveFields, 'limit', inbox, 1],
    [historyFields, 'limit', { ...inbox, peer: 'alice' }, 1],
    [pollFields, 'wait_ms', inbox, 0],
    [sendFields, 'reply_wait_ms', letter, 0],
    [sendFields, 'expected_generation', letter, 1],
  ] as const)('hold from below: %#, %s', (fields, name, rest, least) => {
    const ask = field(fields, name, rest, whole);
    expect([ask(least + 1), ask(least), ask(least - 1)]).toEqual(['taken', 'taken', invalid]);
  });

  it('of lists and texts hold from below', async () => {
    const messages = async (n: number) =>
      answerOf(await acknowledge(desk, { ...inbox, messages: receipts(n) }, alice));
    expect([await messages(1), await messages(0)]).toEqual(['taken', invalid]);
    const text = field(sendFields, 'task_id', letter, astral);
    expect([text(1), text(0)]).toEqual(['taken', invalid]);
  });

  it('of a command\u2019s input are four times those of a payload', async () => {
    const read = async (n: number) =>
      answerOf(await readText(Readable.from([Buffer.alloc(n - 1, 'x'), Buffer.from('x')])));
    const max = 4 * 65_536;
    expect([await read(max - 1), await read(max), await read(max + 1)]).toEqual([
      'taken',
      'taken',
      'payload_too_large',
    ]);
  });
});
