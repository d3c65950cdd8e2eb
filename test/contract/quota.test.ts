// The owner's budget of payload bytes.

import { beforeEach, describe, expect, it } from 'vitest';
import { receive } from '../../src/mailbox/receive.ts';
import { send } from '../../src/mailbox/send.ts';
import { quotaOf } from '../../src/platform/environment.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { sendFields } from '../../src/protocol/requests.ts';
import { alice, difference, letter, ok, openScene, post, read, refused, type Scene } from './desk.ts';

const dayMs = 86_400_000;

let desk: Scene;
beforeEach(async () => {
  desk = await openScene();
});

describe('a storage quota', () => {
  it('[MSG-145] is a whole number of bytes; anything else fails sends, and without one there is none', async () => {
    for (const given of ['abc', '-1', '1.5', '1e3', '0x10', '1 000']) {
      const quota = quotaOf({ POSTBELL_STORAGE_QUOTA_BYTES: given });
      expect(quota).toBe('malformed');
      const refusal = refused(await post({ ...desk, quota: quota as 'malformed' }));
      expect(refusal.code).toBe('invalid_storage_quota');
    }
    expect(desk.rows('SELECT * FROM message')).toEqual([]);
    for (const unset of [{}, { POSTBELL_STORAGE_QUOTA_BYTES: '' }, { POSTBELL_STORAGE_QUOTA_BYTES: ' ' }])
      expect(quotaOf(unset)).toBeUndefined();
    expect(quotaOf({ POSTBELL_STORAGE_QUOTA_BYTES: '0' })).toBe(0);
    for (let nth = 0; nth < 20; nth += 1) {
      ok(await post(desk, { payload: 'x'.repeat(60_000) }));
      await desk.clock.advance(365 * dayMs);
    }
    expect(desk.store.read((tx) => tx.messages.payloadBytes())).toBe(20 * 60_002);
    const { messages, remaining } = ok(
      receive(desk, { project: 'shop', recipient: 'bob', limit: 100 }, alice),
    );
    expect(messages.length + remaining).toBe(20);
  });

  it('[MSG-146] may be filled to the byte, counted in UTF-8; one more is refused and leaves no row', async () => {
    const quota = 30;
    ok(await post({ ...desk, quota }, { payload: '\u20ac'.repeat(6) }));
    expect(desk.store.read((tx) => tx.messages.payloadBytes())).toBe(20);
    const before = desk.counts();
    const over = { payload: 'x'.repeat(9) };
    expect(refused(await post({ ...desk, quota }, over)).code).toBe('storage_quota_exceeded');
    expect(difference(before, desk.counts())).toEqual({});
    expect(desk.store.read((tx) => tx.messages.payloadBytes())).toBe(20);
    const two = ['a', 'b'].map((one) => post({ ...desk, quota }, { payload: one.repeat(8) }));
    const [first, second] = await Promise.all(two);
    expect([isRefusal(first), refused(second).code]).toEqual([false, 'storage_quota_exceeded']);
    expect(difference(before, desk.counts())).toEqual({ message: 1, delivery: 1, event: 1, idempotency: 1 });
    expect(refused(await post({ ...desk, quota }, { payload: '' })).code).toBe('storage_quota_exceeded');
  });

  it('[MSG-147] lets a retry of what is stored pass; 0 refuses every new send', async () => {
    const request = read(sendFields, letter());
    const first = ok(await send(desk, request, alice));
    const full = { ...desk, quota: 0 };
    expect(ok(await send(full, request, alice)).message_id).toBe(first.message_id);
    expect(refused(await send(full, { ...request, payload: 'other' }, alice)).code).toBe(
      'idempotency_conflict',
    );
    expect(refused(await post(full)).code).toBe('storage_quota_exceeded');
    expect(desk.counts().message).toBe(1);
  });
});
