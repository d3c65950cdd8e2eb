// What doctor says of notices that no app-server could start, by the facts that the router left.

import BetterSqlite3 from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { activate } from '../../src/mailbox/activate.ts';
import { activationFields } from '../../src/protocol/requests.ts';
import { dispatch } from '../../src/sessions/dispatch.ts';
import { inspectStore } from '../../src/store/inspection.ts';
import type { DoctorFacts } from '../../src/surfaces/doctor/facts.ts';
import { codexQueueRelease } from '../../src/surfaces/doctor/reached.ts';
import { seededRandom } from './clock.ts';
import { alice, atEnd, attach, ok, openScene, posted, read, type Scene } from './desk.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const [one, two] = ['0199aaaa-0000-7000-8000-000000000001', '0199aaaa-0000-7000-8000-000000000002'];
const noDaemon = '{"reason":"no_daemon"}';

let scene: Scene;
let facts: number;
beforeEach(async () => {
  scene = await openScene();
  scene.onNotify = ({ project, delivery_id }) => dispatch(scene.board, project, delivery_id);
  facts = 0;
  for (const thread of [one, two]) {
    const codex = { bell: 'codex-queue', adapter_kind: 'codex-queue', host_kind: 'codex' } as const;
    await attach(scene, thread, { ...codex, principal_id: `codex-thread-${thread}` });
  }
});

/** A message that the thread's host accepted. */
async function accepted(thread: string) {
  const sent = await posted(scene, { recipient: thread, target_kind: 'session' });
  expect(scene.rows('SELECT 1 FROM host_accept WHERE delivery_id = ?', sent.delivery_id)).toHaveLength(1);
  return sent;
}

interface Fact {
  agoMs: number;
  value?: string;
  detail?: string | null;
  actor?: string;
  kind?: string;
}

/** The final fact of a release, as the router writes it. */
async function told(thread: string, fact: Fact): Promise<void> {
  const { delivery_id } = await accepted(thread);
  const { agoMs, value = 'unsupported', detail = noDaemon, actor = 'postbell-router' } = fact;
  facts += 1;
  const at = new Date(scene.clock.nowMs() - agoMs).toISOString();
  const database = new BetterSqlite3(scene.path);
  atEnd(() => database.close());
  database
    .prepare(
      `INSERT INTO receipt (receipt_id, delivery_id, receipt_kind, idempotency_key, value, actor, detail, recorded_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(`rct_${facts}`, delivery_id, fact.kind ?? 'host_activation', actor, value, actor, detail, at);
}

async function row() {
  const store = await inspectStore({ path: scene.path, clock: scene.clock, random: seededRandom(1) });
  return codexQueueRelease({ store: { state: 'found', value: store } } as DoctorFacts);
}

describe('[SES-136] codex-queue-release', () => {
  it('passes where there is none', async () => {
    expect((await row()).level).toBe('pass');
    await accepted(one);
    expect((await row()).level).toBe('pass');
  });

  it('names every thread whose newest fact says no_daemon, with the remedy', async () => {
    await told(one, { agoMs: hourMs });
    expect((await row()).text).toContain(`: "${one}";`);
    await told(two, { agoMs: hourMs });
    expect(await row()).toMatchObject({
      level: 'warn',
      text: expect.stringContaining(`: "${one}", "${two}";`),
      hint: expect.stringMatching(/--no-daemon/),
    });
  });

  it('looks at the last seven days: 6 d 23 h counts, 7 d 1 h does not', async () => {
    await told(one, { agoMs: 6 * dayMs + 23 * hourMs });
    await told(two, { agoMs: 7 * dayMs + hourMs });
    const { level, text } = await row();
    expect([level, text.includes(one), text.includes(two)]).toEqual(['warn', true, false]);
  });

  it('the newest of a thread counts: a newer woken passes, a newer no_daemon does not', async () => {
    await told(one, { agoMs: 2 * hourMs });
    await told(one, { agoMs: hourMs, value: 'woken', detail: '{"codex_queue":"started"}' });
    expect((await row()).level).toBe('pass');
    await told(one, { agoMs: 0 });
    expect((await row()).level).toBe('warn');
  });

  it('ignores other outcomes, details that say nothing, and what a recipient says of itself', async () => {
    await told(one, { agoMs: 0, value: 'failed', detail: '{"reason":"busy"}' });
    await told(two, { agoMs: 0, value: 'manual_resume_required', detail: null });
    await told(two, { agoMs: 0, value: 'unsupported', detail: '{"reason"' });
    await told(one, { agoMs: 0, actor: 'bob' });
    await told(one, { agoMs: 0, kind: 'activation' });
    const { message_id } = await accepted(two);
    const own = { value: 'unsupported', idempotency_key: 'a1', detail: noDaemon };
    ok(
      await activate(scene, read(activationFields, { project: 'shop', recipient: two, message_id, ...own }), {
        ...alice,
      }),
    );
    expect((await row()).level).toBe('pass');
  });
});
