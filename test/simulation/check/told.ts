// What a sender is told is what is known at that moment, and no more.

import type { Checker, MakeChecker } from '../checker.ts';

export const theSenderIsToldTheTruth: MakeChecker = ({ facts, broken }): Checker => ({
  name: 'the sender is told the truth',
  onDeed: (deed) => {
    if (deed.kind !== 'told') return;
    const delivery = facts.deliveryOfMessage.get(deed.messageId);
    if (delivery === undefined) return;
    const { id, open, acked, accepted, intake } = delivery;
    const say = (told: string): void => broken(`of ${id} it was told ${told}`);
    if (deed.native && !accepted) say('that a host accepted it');
    if (deed.quieted === 'taken_in' && !intake) say('that it was taken in');
    if (deed.quieted === 'progress' && delivery.worthy) say('that it is progress');
    if ((deed.state === 'receiver_acknowledged') !== acked && deed.state !== undefined) say(deed.state);
    if (deed.state === 'inbox_queued' && !(open && facts.isRung(id))) say(deed.state);
  },
});
