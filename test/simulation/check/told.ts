// What a sender is told is what is known at that moment, and no more.

import type { Checker, MakeChecker } from '../checker.ts';

export const theSenderIsToldTheTruth: MakeChecker = ({ facts, nowMs, broken }): Checker => ({
  name: 'the sender is told the truth',
  onDeed: (deed) => {
    if (deed.kind !== 'told') return;
    const delivery = facts.deliveryOfMessage.get(deed.messageId);
    if (delivery === undefined) return;
    const { id, acked, accepted, intake, expiresAtMs, takenInAtMs } = delivery;
    const say = (told: string): void => broken(`of ${id} it was told ${told}`);
    if (deed.native && !accepted) say('that a host accepted it');
    if (deed.quieted === 'taken_in' && !intake) say('that it was taken in');
    if (deed.quieted === 'progress' && !delivery.progress) say('that it is progress');
    if (deed.quieted === 'loop_guard' && !delivery.held) say('that the loop guard held it');
    if ((deed.state === 'receiver_acknowledged') !== acked && deed.state !== undefined) say(deed.state);
    if (deed.state === 'inbox_queued' && !(facts.waits(delivery) && facts.isRung(id))) say(deed.state);
    const refused = facts.deliveries.get(deed.fallbackOf ?? '');
    if (deed.fallbackOf !== undefined && !(refused?.toSession && refused.recipient === delivery.intended))
      say(`that it stands for ${deed.fallbackOf}`);
    if (deed.expired === undefined) return;
    // What took its place while it waited ended that wait, by the clock of then.
    const newer = facts.messages.get(delivery.supersededBy ?? '');
    const waitedUntilMs = newer === undefined ? nowMs() : Date.parse(String(newer.created_at));
    const passed = expiresAtMs !== undefined && expiresAtMs <= waitedUntilMs;
    const inTime = takenInAtMs !== undefined && expiresAtMs !== undefined && takenInAtMs < expiresAtMs;
    if (deed.expired !== (passed && !inTime)) say(`that it has ${deed.expired ? '' : 'not '}expired`);
  },
});
