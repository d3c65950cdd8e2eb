/** What became of one run of a hook. `reason` is codes and counts: never payload, names or SQL. */
export interface HookOutcome {
  outcome: 'wrote' | 'notified' | 'skipped' | 'error';
  reason: string;
}
