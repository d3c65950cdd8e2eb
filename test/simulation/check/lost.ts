// Every answered send is there as it was sent, and waits until it is taken in, superseded, or its time has passed.

import { needsNoAnswer } from '../../../src/protocol/loop-guard.ts';
import type { SendRequest } from '../../../src/protocol/requests.ts';
import type { Row } from '../../../src/store/database.ts';
import type { Checker, MakeChecker } from '../checker.ts';
import { Tasks } from './tasks.ts';

const kept = new Set([
  'message',
  'delivery',
  'event',
  'idempotency',
  'receipt',
  'attempt',
  'host_accept',
  'fallback',
]);
const mayChange = new Set(['open', 'superseded_by']);

export const acknowledgedIsNeverLost: MakeChecker = ({ facts, rows, broken }): Checker => {
  const answered = new Set<string>();
  const letters = new Map<string, SendRequest>();
  const tasks = new Tasks((id) => facts.chain(id));

  const changed = (before: Row, after: Row, takenIn: ReadonlySet<unknown>): void => {
    const id = after.delivery_id;
    const other = Object.keys(after).find((name) => !mayChange.has(name) && before[name] !== after[name]);
    if (other !== undefined) broken(`${other} of ${id} was changed`);
    if (before.superseded_by !== null && before.superseded_by !== after.superseded_by)
      broken(`${id} was superseded once, and is so again`);
    if (before.open === 1 && after.open !== 1 && !takenIn.has(id) && after.superseded_by === null)
      broken(`${id} waits no more: nobody took it in, and nothing took its place`);
    if (before.open !== 1 && after.open === 1) broken(`${id} waits again`);
  };

  /** Whether it is kept as its sender gave it. */
  const compare = (key: string, messageId: string): void => {
    const letter = letters.get(key);
    const row = facts.messages.get(messageId);
    if (letter === undefined || row === undefined) return;
    for (const name of ['task_id', 'status', 'reply_to', 'expires_at'] as const)
      if ((letter[name] ?? null) !== row[name]) broken(`${name} of ${messageId} is not as it was sent`);
    const expiresAtMs = letter.expires_at === undefined ? undefined : Date.parse(letter.expires_at);
    if (facts.deliveryOfMessage.get(messageId)?.expiresAtMs !== expiresAtMs)
      broken(`${messageId} does not expire as it was sent`);
    if ((row.quiet === 1) !== (letter.quiet === true)) broken(`quiet of ${messageId} is not as it was sent`);
    const answers = facts.messages.get(letter.reply_to ?? '');
    if (row.hops !== (answers === undefined ? 0 : (answers.hops as number) + 1))
      broken(`${messageId} is ${row.hops} hops from a person`);
    if ((row.held === 1) !== needsNoAnswer(letter)) broken(`${messageId} is held, or not, for no cause`);
  };

  return {
    name: 'acknowledged is never lost',
    beforeCommit: (changes) => {
      const takenIn = new Set<unknown>();
      for (const { table, after } of changes)
        if (table === 'receipt' && after?.receipt_kind === 'intake') takenIn.add(after.delivery_id);
      for (const { table, before, after } of changes) {
        if (after === undefined && kept.has(table))
          broken(`a row of ${table} was deleted: ${JSON.stringify(before)}`);
        if (table === 'delivery' && before !== undefined && after !== undefined)
          changed(before, after, takenIn);
      }
    },
    afterCommit: (changes) => {
      const scopes = new Set<string>();
      for (const { table, before, after } of changes) {
        if (table !== 'delivery' || after === undefined) continue;
        const delivery = facts.deliveries.get(after.delivery_id as string);
        const message = facts.messages.get(after.message_id as string);
        if (delivery === undefined || message === undefined) continue;
        const scope = tasks.scopeOf(delivery, message);
        if (scope !== undefined) scopes.add(scope);
        else if (delivery.supersededBy !== undefined) broken(`${delivery.id} is no task, and was superseded`);
        if (before === undefined && scope !== undefined) tasks.add(scope, delivery, message);
      }
      for (const scope of scopes) for (const text of tasks.wrongIn(scope)) broken(text);
    },
    onDeed: (deed) => {
      if (deed.kind === 'asked' && deed.call === 'send') letters.set(deed.key, deed.letter);
      if (deed.kind === 'answered' && deed.call === 'send') {
        const delivery = facts.deliveryOfMessage.get(deed.messageId);
        if (delivery === undefined || !delivery.hasEvent)
          broken(`the send ${deed.key} was answered, and ${deed.messageId} is not stored`);
        compare(deed.key, deed.messageId);
        answered.add(deed.messageId);
      }
      if (deed.kind === 'answered' && deed.call === 'consume')
        for (const id of deed.messageIds)
          if (!facts.deliveryOfMessage.get(id)?.intake)
            broken(`the intake of ${id} was answered and is not stored`);
      if (deed.kind === 'polled') {
        const seen = new Set(deed.deliveryIds);
        for (const delivery of facts.deliveries.values())
          if (delivery.project === deed.project && delivery.recipient === deed.recipient)
            if (delivery.seq <= deed.since && !seen.has(delivery.id)) broken(`no poll shows ${delivery.id}`);
      }
      if (deed.kind === 'found' && !deed.found)
        broken(`${deed.messageId} was answered, and its receipts are not found`);
    },
    atEnd: () => {
      const stored = new Map(
        rows('SELECT message_id, open FROM delivery').map((row) => [row.message_id, row.open]),
      );
      for (const id of answered)
        if (stored.get(id) !== (facts.deliveryOfMessage.get(id)?.open ? 1 : 0))
          broken(`${id} is not in the store`);
      for (const fault of [...rows('PRAGMA integrity_check'), ...rows('PRAGMA foreign_key_check')])
        if (fault.integrity_check !== 'ok') broken(`the store is damaged: ${JSON.stringify(fault)}`);
      for (const id of answered) {
        const delivery = facts.deliveryOfMessage.get(id);
        if (
          delivery === undefined ||
          delivery.open === (delivery.intake || delivery.supersededBy !== undefined)
        )
          broken(`${id} is neither waiting, nor taken in, nor superseded`);
      }
    },
  };
};
