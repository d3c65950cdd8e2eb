// Nobody reads, takes in, is handed or is rung for mail that is another's.

import { type Checker, described, type MakeChecker } from '../checker.ts';

export const noMailToAnotherInbox: MakeChecker = ({ facts, mayRead, sessionNamed, broken }): Checker => ({
  name: 'no mail to another inbox',
  afterCommit: (changes) => {
    for (const { table, before, after } of changes) {
      if (table === 'receipt' && before === undefined && after !== undefined) {
        const taker = sessionNamed((after.caller_session as string | null) ?? '');
        const taken = facts.deliveries.get(after.delivery_id as string);
        if (after.caller_session === null && after.receipt_kind === 'intake' && taken?.intended !== undefined)
          broken(`somebody without a session records intake of ${described(taken)}`);
        if (taker !== undefined && taken?.intended !== undefined)
          if (!mayRead({ ...taker, principal: taken.recipient, project: taken.project }, taken))
            broken(`${taker.id} records ${after.receipt_kind} of ${described(taken)}`);
      }
      if (table !== 'reservation_cover' || before !== undefined || after === undefined) continue;
      const reservation = facts.reservations.get(after.notification_id as string);
      const delivery = facts.deliveries.get(after.delivery_id as string);
      if (reservation === undefined || delivery === undefined) continue;
      const session = sessionNamed(reservation.root);
      if (session !== undefined && !mayRead(session, delivery))
        broken(`${session.id} is rung for ${described(delivery)}`);
    }
  },
  onDeed: (deed) => {
    if (deed.kind === 'received')
      for (const id of deed.messageIds) {
        const delivery = facts.deliveryOfMessage.get(id);
        if (delivery === undefined || !mayRead(deed.caller, delivery))
          broken(`${deed.caller.id} received ${delivery ? described(delivery) : id}`);
      }
    if (deed.kind === 'handed') {
      const delivery = facts.deliveries.get(deed.deliveryId);
      if (delivery === undefined || !mayRead(deed.session, delivery))
        broken(`${deed.session.id} was handed ${delivery ? described(delivery) : deed.deliveryId}`);
    }
  },
});
