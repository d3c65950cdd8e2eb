// Row of the link: what the trust gate refused, whose clock differs, and which chains of answers went on too long.

import type { LinkFacts } from '../../ports/inspection.ts';
import { type Finding, worst } from '../../protocol/doctor.ts';
import { quoted } from '../../protocol/json.ts';
import { limits } from '../../protocol/limits.ts';
import { type DoctorFacts, listed, warn } from './facts.ts';
import { isFinding, mailOf } from './stored.ts';

/** Longer than any outage that mends itself soon. */
const stuckMs = 900_000;

const waits = ({ count }: LinkFacts['outbox']): string =>
  count === 0 ? 'nothing is on its way to other machines' : `${count} on the way to other machines`;

/** The oldest that waits for long, and for whom. */
function stuck({ count, oldest }: LinkFacts['outbox'], nowMs: number): Finding[] {
  if (oldest === undefined || nowMs - Date.parse(oldest.created_at) < stuckMs) return [];
  const { created_at, peer_key, relayed, last_error } = oldest;
  const taken = 'a relay took it, and its receiver has not said that it is stored';
  const where = relayed
    ? `${taken}${last_error === null ? '' : `; since then: ${last_error}`}`
    : (last_error ?? 'no machine of that peer is known yet, or no router carries it');
  const text = `${count} on the way to other machines, the oldest to ${quoted(peer_key)} since ${created_at}: ${where}`;
  const hint =
    'postbell inbox pending; postbell router status; where its machine was replaced or moved, postbell peer pair with its new address';
  return [warn(text, hint)];
}

export function link(facts: Pick<DoctorFacts, 'store' | 'nowMs'>): Finding {
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const { refused, stale, looped, outbox } = mail.link;
  const findings: Finding[] = stuck(outbox, facts.nowMs);
  if (stale.length > 0)
    findings.push(
      warn(
        `within 7 days a peer refused mail from here for the time at which it was signed, more than a minute ahead of its clock or a day behind: ${listed(stale)}`,
        'compare the clocks of both machines',
      ),
    );
  if (looped > 0)
    findings.push(
      warn(
        `chains of answers from other machines that went beyond ${limits.hopsMax} within 7 days: ${looped}; what came after is kept, and wakes nobody`,
        'read what they wrote each other (postbell read), and decide who goes on',
      ),
    );
  const counts = refused.map(({ step, count, last_at }) => `${step} ${count} (last ${last_at})`);
  const said =
    counts.length === 0
      ? `${waits(outbox)}; the trust gate has refused nothing`
      : `${waits(outbox)}; the trust gate refused, by its step: ${counts.join(', ')}`;
  // Whoever knows the address can raise these: they warn of nothing by themselves.
  if (findings.length === 0) return { level: counts.length === 0 ? 'pass' : 'info', text: said };
  const found = worst(findings, { level: 'pass', text: '' });
  return counts.length === 0 ? found : { ...found, text: `${found.text}; ${said}` };
}
