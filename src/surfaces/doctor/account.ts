// Rows of the account among other machines: its key, whom it trusts, and its relays.

import type { Finding } from '../../protocol/doctor.ts';
import { type DoctorFacts, unseen, warn } from './facts.ts';

const none = 'no identity: nothing leaves this machine';

export function identity({ account }: Pick<DoctorFacts, 'account'>): Finding {
  const { identity: found } = account;
  if (found.state === 'missing')
    return { level: 'info', text: `${none}; postbell identity create makes one` };
  if (found.state === 'closed')
    return warn(
      `${found.why}; until it is mended nothing goes out or comes in`,
      'mend the file that is named; postbell identity create --force makes another key, and every peer must be paired with anew',
    );
  return { level: 'pass', text: `the key ${found.value.key.slice(0, 8)}… is private to this account` };
}

export function peers({ account, router }: Pick<DoctorFacts, 'account' | 'router'>): Finding {
  const { peers: found } = account;
  const { running } = router;
  // Which a running router made before: only it knows that the file is gone.
  const gone = running !== undefined && !('failed' in running) ? running.link?.why : undefined;
  if (found.state === 'missing' && gone === undefined) return { level: 'info', text: 'no peers' };
  if (found.state !== 'found')
    return warn(
      `${found.state === 'closed' ? found.why : gone}; until it is mended nothing comes in from other machines, and it waits on the relays`,
      'mend the file that is named',
    );
  return { level: 'pass', text: found.value === 1 ? '1 peer' : `${found.value} peers` };
}

export function relays(facts: Pick<DoctorFacts, 'account' | 'router'>): Finding {
  const { account, router } = facts;
  if (account.relays.state === 'closed')
    return warn(account.relays.why, 'set POSTBELL_RELAYS to origins such as https://relay.example');
  const listed = account.relays.state === 'found' ? account.relays.value : [];
  if (listed.length === 0)
    return account.identity.state === 'found'
      ? { level: 'info', text: 'POSTBELL_RELAYS names no relay: nothing leaves this machine' }
      : { level: 'info', text: none };
  const { probed } = account;
  if (probed !== undefined) {
    const failed = probed.filter(({ why }) => why !== undefined);
    if (failed.length === 0) return { level: 'pass', text: `${listed.join(', ')}: asked now, and answering` };
    return warn(failed.map(({ why }) => why).join('; '), 'start the relay, or correct POSTBELL_RELAYS');
  }
  return told(listed, router.running);
}

/** What the running router says of them; it may have been started with others. */
function told(listed: readonly string[], running: DoctorFacts['router']['running']): Finding {
  const names = listed.join(', ');
  if (running === undefined || 'failed' in running)
    return {
      level: 'info',
      text: `${names}; not asked: no router runs that could say how they stand (--probe-relays asks them)`,
    };
  if (running.link === undefined)
    return warn(
      `${names} are named here, and the running router knows of none: it was started without POSTBELL_RELAYS`,
      'postbell router stop; the next session starts one that has it',
    );
  const missing = listed.filter((one) => !running.link?.relays.some(({ origin }) => origin === one));
  const failing = running.link.relays.filter(({ failure }) => failure !== undefined);
  if (running.link.why !== undefined) return warn(`${names}: ${running.link.why}`, 'mend what it names');
  if (failing.length > 0)
    return warn(
      failing.map(({ failure, since }) => `${failure} (since ${since})`).join('; '),
      'look at the relay, and at POSTBELL_RELAYS where the router was started; mail waits until it answers',
    );
  const clocks = running.link.relays.flatMap(({ clock }) => clock ?? []);
  if (clocks.length > 0) return warn(clocks.join('; '), 'date -u, here and where the relay runs');
  if (missing.length > 0)
    return unseen(`the router has not yet heard of ${missing.join(', ')}`, 'postbell router status');
  return { level: 'pass', text: `${names}: the router drains them` };
}
