/** The environment of a process. An empty value counts as unset except where a rule says otherwise. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A host's private socket and its token are dropped where we begin: nothing of ours uses them, or hands them on. */
for (const name of Object.keys(process.env))
  if (name.startsWith('CLAUDE_CODE_MESSAGING_')) delete process.env[name];

export const processEnvironment: Environment = process.env;

/** The value of `name`; blank counts as unset. */
export function setting(environment: Environment, name: string): string | undefined {
  const value = environment[name];
  return value === undefined || value.trim() === '' ? undefined : value;
}

/** What the owner allows all payloads to take; undefined where nothing is said. */
export function quotaOf(environment: Environment): number | 'malformed' | undefined {
  const given = setting(environment, 'POSTBELL_STORAGE_QUOTA_BYTES');
  if (given === undefined) return undefined;
  return /^\d+$/.test(given) && Number.isSafeInteger(Number(given)) ? Number(given) : 'malformed';
}

/** After how much quiet a task under way is asked about, in ms; undefined where the owner wants no such question. */
export function progressIntervalMs(environment: Environment): number | undefined {
  const given = setting(environment, 'POSTBELL_PROGRESS_INTERVAL') ?? '60';
  return /^\d{1,9}$/.test(given) && Number(given) > 0 ? Number(given) * 1_000 : undefined;
}

/** What a detached process of our own may inherit: never a host's credentials or private sockets. */
export function ownEnvironment(environment: Environment): Record<string, string> {
  const kept =
    /^(PATH|HOME|USERPROFILE|USER|LOGNAME|TZ|LANG|LC_.*|TMPDIR|XDG_(STATE|CONFIG)_HOME|POSTBELL_.*)$/;
  const entries = Object.entries(environment).filter(
    ([name, value]) => value !== undefined && kept.test(name),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}
