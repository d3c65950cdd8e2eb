// `postbell up`: the router, and a live view in the terminal. Where a router runs already, the view alone.

import path from 'node:path';
import { petnameOf } from '../peers/who.ts';
import { processEnvironment } from '../platform/environment.ts';
import { stderrLog } from '../platform/log.ts';
import { checkSocketPath, placesOf } from '../platform/paths.ts';
import { say } from '../platform/stderr.ts';
import type { Account } from '../ports/account.ts';
import { describeError, type ErrorCode, Fault, isRefusal } from '../protocol/errors.ts';
import { version } from '../protocol/version.ts';
import type { StopCause } from '../router/handlers.ts';
import { liveView } from '../surfaces/live/view.ts';
import { accountIn } from './account.ts';
import { type Daemon, makePolicyFile, startRouter } from './daemon.ts';
import { endOnSignal } from './ending.ts';
import { orFail } from './failure.ts';
import { type Ground, openGround } from './store.ts';

const retryMs = 5_000;
const starting = 'starting the router';
/** Another one runs, or is about to. */
const others: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'router_already_running',
  'router_start_in_progress',
  'router_superseded',
]);

export function main(words: readonly string[]): Promise<void> {
  return orFail(words, async (rest) => {
    if (rest.length > 0) throw new Fault('usage', 'up takes no words');
    await run();
  });
}

async function run(): Promise<void> {
  const places = placesOf(processEnvironment);
  checkSocketPath(places.routerSocket);
  const ground = await openGround({ groupCommits: true });
  let asked = false;
  let closeView = (): void => {};
  const router = holdRouter(ground, () => {
    asked = true;
    end();
  });
  const end = endOnSignal(async () => {
    closeView();
    if (asked) say('The router was told to stop; its live view ends.\n');
    await router.close();
    ground.store.close();
  });
  await router.begin();
  const account = accountIn(processEnvironment);
  closeView = liveView({
    desk: { ...ground, account },
    nameOf: petnames(account),
    relays: () => router.relays(),
    screen: {
      isTerminal: process.stdout.isTTY === true,
      columns: () => process.stdout.columns ?? 80,
      rows: () => process.stdout.rows ?? 24,
      write: (text) => process.stdout.write(text),
    },
    head: () => [
      `Postbell ${version}  ${router.state()}  (Ctrl-C ends it)`,
      `store ${ground.places.database}`,
    ],
    next: firstSteps(),
  });
  // Nobody watches any more.
  process.stdout.on('error', end);
}

/** As the owner's list says at that moment. */
const petnames =
  (account: Account) =>
  (key: string): string => {
    const policy = account.policy();
    const identity = account.identity();
    return petnameOf(
      isRefusal(policy) ? undefined : policy,
      isRefusal(identity) ? undefined : identity.key,
      key,
    );
  };

/** Runs the router here; where another one runs, or it cannot be run, tries again until it can, or somebody ends it. */
function holdRouter(ground: Ground, end: () => void) {
  const log = stderrLog('warn');
  let daemon: Daemon | undefined;
  let state = starting;
  let cancel = (): void => {};
  /** Whoever removed the socket, or is newer, made room or takes it: this one begins again, and may have to wait. */
  const again = (why: string): void => {
    const former = daemon;
    daemon = undefined;
    state = why;
    void former?.close().finally(() => void take());
  };
  const lost = (): void => again('the socket was removed; starting again');
  const stop = (why: StopCause): void =>
    why === 'outdated' ? again('a newer version takes the router over') : end();
  const take = async (): Promise<void> => {
    try {
      makePolicyFile(ground.environment, log);
      daemon = await startRouter(ground, log, { stop, lost });
      state = 'router running';
    } catch (error) {
      const { code } = describeError(error);
      const other = others.has(code);
      // What keeps it from starting at all is said at once; what comes up later, when it was another's, is shown.
      if (!other && state === starting) throw error;
      state = other ? 'watching: another router runs' : `no router: ${code}`;
      cancel = ground.clock.after(retryMs, () => void take());
    }
  };
  return {
    begin: take,
    state: () => state,
    relays: () => daemon?.link()?.relays ?? [],
    close: async () => {
      cancel();
      await daemon?.close();
    },
  };
}

/** The plugin, an agent, a message; each command on a line of its own, to be copied whole. */
function firstSteps(): string[] {
  return [
    'First start. Three steps and the first message is on its way:',
    '1. the plugin, in another terminal',
    `claude plugin marketplace add ${path.dirname(__dirname)} && claude plugin install postbell@postbell`,
    '2. an agent, in your project',
    'POSTBELL_RECIPIENT=reviewer claude',
    '3. a message, from a third terminal in the same project',
    `echo 'please look at the parser' | node ${path.join(__dirname, 'postbell.cjs')} send reviewer`,
  ];
}
