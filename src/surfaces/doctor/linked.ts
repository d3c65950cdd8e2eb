// Row of the link: what the trust gate refused, whose clock differs, and which chains of answers went on too long.

import { type Finding, worst } from '../../protocol/doctor.ts';
import { limits } from '../../protocol/limits.ts';
import { type DoctorFacts, listed, warn } from './facts.ts';
import { isFinding, mailOf } from './stored.ts';

export function link(facts: Pick<DoctorFacts, 'store'>): Finding {
  const mail = mailOf(facts);
  if (isFinding(mail)) return mail;
  const { refused, stale, looped } = mail.link;
  const findings: Finding[] = [];
  if (stale.length > 0)
    findings.push(
      warn(
        `mail from here reached a peer as signed more than a day ago, within 7 days: ${listed(stale)}`,
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
      ? 'the trust gate has refused nothing'
      : `the trust gate refused, by its step: ${counts.join(', ')}`;
  // Whoever knows the address can raise these: they warn of nothing by themselves.
  if (findings.length === 0) return { level: counts.length === 0 ? 'pass' : 'info', text: said };
  const found = worst(findings, { level: 'pass', text: '' });
  return counts.length === 0 ? found : { ...found, text: `${found.text}; ${said}` };
}
