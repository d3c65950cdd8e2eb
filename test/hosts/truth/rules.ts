// What is told about one message in four places, and the rules by which these must agree: the answer to the sender, the
// receipts, who is discovered, and what the model was sent. The rules know of no host and no fault.

/** The answer to one send. */
export interface Told {
  /** `accepted`, `stored`, or the reason, else the code, of the refusal. */
  answer: string;
  /** As the answer says it; undefined where the send was refused. */
  presence?: string;
  message_id?: string;
}

export interface Fact {
  receipt_kind: string;
  delivery_state?: { intake: string; target_session: string };
}

/** One message: what its sender was told, and what is written down of it. */
export interface Posted {
  told: Told;
  /** Facts as soon as the sender had its answer. */
  atAnswer: string[];
  /** Facts at the end of the look, and the state that they come to. */
  atEnd: Fact[];
  state?: string;
  /** The model was sent its body. */
  body: boolean;
  /** The model called the tool that acknowledges it. */
  acknowledged: boolean;
}

/** A look at who is there: the session's own card, and those of its name. */
export interface Seen {
  session: 'live' | 'deaf' | 'absent' | 'not known';
  name: readonly ('live' | 'deaf')[];
}

export interface Sight {
  exact?: Posted;
  /** Sent where the exact session refused, or where no session is known. */
  byName?: Posted;
  /** Before the send, after the answers, at the end. */
  seen: Seen[];
  /** The model called the tool that fetches mail, after the send. */
  fetched: boolean;
  /** The most that the model was told of that there is mail. */
  notified: 'nothing' | 'line' | 'notice';
  /** How long its host has been dead at the send. */
  deadMs?: number;
}

/** Longer than this nobody may take a dead session for a live one. */
export const deadMsMax = 10_000;

const absent = new Set(['not_live', 'never_registered', 'replaced']);
const nobody = new Set(['away', 'gone', 'unknown']);
const unreached = new Set(['router_unreachable', 'router_timeout']);

/** Where two places contradict each other, or one says more than is known. None: they agree. */
export function contradictions(sight: Sight): string[] {
  const found: string[] = [];
  const must = (holds: boolean, what: string): void => void (holds || found.push(what));
  const early = sight.seen.slice(0, 2);
  const sessions = early.map(({ session }) => session);
  if (sight.exact !== undefined) exactRules(sight.exact, sessions, must);
  for (const posted of [sight.exact, sight.byName]) {
    if (posted === undefined) continue;
    presenceRules(posted.told, early, must);
    factRules(posted, sight, must);
  }
  const claimsLife = [sight.exact, sight.byName].some((one) => one?.told.presence === 'live');
  if ((sight.deadMs ?? 0) > deadMsMax)
    must(!claimsLife && !sessions.includes('live'), 'a host long dead is called live');
  return found;
}

type Must = (holds: boolean, what: string) => void;

/** An exact session: acceptance is written down, by a session that was there to accept; a refusal has its cause. */
function exactRules({ told, atAnswer, atEnd }: Posted, sessions: Seen['session'][], must: Must): void {
  const accepted = told.answer === 'accepted';
  must(accepted === atAnswer.includes('host_accept'), 'the answer and host_accept differ');
  if (accepted) {
    must(atAnswer.includes('attempt'), 'accepted without an attempt');
    must(sessions.includes('live'), 'accepted by a session that is not discovered live');
  }
  if (absent.has(told.answer))
    must(
      sessions.some((one) => one === 'absent' || one === 'not known'),
      `${told.answer}, and yet it was there`,
    );
  if (told.answer === 'no_bell') must(sessions.includes('deaf'), 'no_bell, and yet it is not deaf');
  if (unreached.has(told.answer))
    must(sessions.includes('not known'), 'no router for the sender, and yet one answers');
  if (told.answer === 'host_outcome_timeout')
    must(atAnswer.includes('attempt'), 'a time-out without an attempt');
  if (absent.has(told.answer) || told.answer === 'no_bell' || unreached.has(told.answer))
    must(!atEnd.some((fact) => fact.receipt_kind === 'host_accept'), 'refused, and accepted by itself later');
}

/** What the sender is told of the recipient is what discover shows. */
function presenceRules({ presence }: Told, seen: readonly Seen[], must: Must): void {
  const names = seen.map(({ name }) => name);
  if (presence === 'live')
    must(
      names.some((cards) => cards.includes('live')),
      'live, and no card of the name is',
    );
  if (presence === 'deaf')
    must(
      names.some((cards) => cards.length > 0 && !cards.includes('live')),
      'deaf, and discover shows otherwise',
    );
  if (nobody.has(presence ?? ''))
    must(
      names.some((cards) => cards.length === 0),
      `${presence}, and yet a card of the name is there`,
    );
  if (presence === 'not_checked')
    must(
      seen.some(({ session }) => session === 'not known'),
      'not checked, and yet discover answers',
    );
}

/** Facts of reading come from the reader's own calls, and from nothing else. */
function factRules({ told, atEnd, state, body, acknowledged }: Posted, sight: Sight, must: Must): void {
  const kinds = new Set(atEnd.map(({ receipt_kind }) => receipt_kind));
  const stored = told.message_id !== undefined;
  must(stored || told.answer === 'store_busy', 'refused after the commit without a message id');
  if (!stored) {
    must(!body, 'not stored, and yet the model has the body');
    return;
  }
  must(kinds.has('intake') === acknowledged, 'intake and the call of the model differ');
  must(kinds.has('ack') === acknowledged, 'ack and the call of the model differ');
  must(!body || sight.fetched, 'the model has a body that it did not fetch');
  must(!acknowledged || body, 'acknowledged by a model that never had the body');
  must((state === 'receiver_acknowledged') === kinds.has('ack'), `the state is ${state}`);
  const handed = ['host_queued', 'inbox_queued', 'notification_sent'].includes(state ?? '');
  const rung = kinds.has('host_accept') || sight.notified === 'notice' || sight.seen.some(isLive);
  must(!handed || rung, `${state}, and nobody was there to be rung`);
  for (const { delivery_state } of atEnd) {
    if (delivery_state === undefined) continue;
    must((delivery_state.intake === 'recorded') === kinds.has('intake'), 'two words for one intake');
    const [last] = sight.seen.slice(-1);
    if (delivery_state.target_session === 'live')
      must(last === undefined || last.session !== 'absent', 'its session is live and absent');
    if (delivery_state.target_session === 'not_live')
      must(last === undefined || last.session === 'absent', 'its session is not live, and discovered');
  }
}

const isLive = ({ session, name }: Seen): boolean => session === 'live' || name.includes('live');

/** How far the message went that counts: the exact one where its session accepted it, else the one by name. */
export const reached = ({ exact, byName, notified }: Sight): string => {
  const all = [exact, byName];
  if (all.some((one) => one?.acknowledged)) return 'took it in';
  return all.some((one) => one?.body) ? 'body' : notified;
};

/** The cell: what the exact session's sender was told / presence / card / what the model saw. */
export function words(sight: Sight): string {
  const { exact, byName, seen } = sight;
  const presence = exact?.told.presence ?? byName?.told.presence ?? byName?.told.answer ?? '–';
  return [exact?.told.answer ?? '–', presence, seen[1]?.session ?? '–', reached(sight)].join(' / ');
}
