// The automatic project id: a readable label, a tilde, and the first 32 hex digits of SHA-256 over an identity
// string that is the same for every clone of one remote. The hash is handed in.

/** What a git remote or directory is known by. */
export type Identity = { kind: 'git'; locator: string } | { kind: 'path'; path: string };

const networkSchemes = new Set(['http', 'https', 'git', 'ssh']);
const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443', git: '9418', ssh: '22' };

export function identityString(identity: Identity): string {
  return identity.kind === 'git' ? `git:${identity.locator}` : `path:${identity.path}`;
}

/** `<label>~<32 hex>`. */
export function projectId(identity: Identity, sha256Hex: (text: string) => string): string {
  const named = identity.kind === 'git' ? identity.locator : identity.path;
  return `${labelOf(named)}~${sha256Hex(identityString(identity)).slice(0, 32)}`;
}

/** The last path part without .git; it does not make the identity. */
function labelOf(text: string): string {
  const last =
    text
      .replace(/[\\/]+$/, '')
      .split(/[\\/]/)
      .at(-1) ?? '';
  const label = last
    .replace(/\.git$/, '')
    .replace(/[^A-Za-z0-9._-]/gu, '-')
    .slice(0, 60);
  return label === '' ? 'project' : label;
}

/**
 * A remote URL as a locator without credentials; undefined where it is no network remote. What looks like a URL and
 * is none may hold a password anywhere, so it is not read as the scp form.
 */
export function locatorOf(remote: string): string | undefined {
  const text = remote.trim();
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const url = /^([^:]+):\/\/(?:([^/]*)@)?(\[[^\]]+\]|[^/:@]*)(?::(\d*))?(\/.*)?$/.exec(text);
    return url === null ? undefined : urlLocator(url);
  }
  const scp = /^(?:([^@/:]+)@)?(\[[^\]]+\]|[^/:@]+):(.+)$/.exec(text);
  if (scp === null) return undefined;
  const [, login, host, path] = scp as unknown as [string, string | undefined, string, string];
  if (login === undefined && /^[A-Za-z]$/.test(host)) return undefined;
  return path.startsWith('/')
    ? sshLocator(login, host, undefined, path, true)
    : sshLocator(login, host, undefined, path.replace(/^~\//, ''), false);
}

function urlLocator(match: RegExpExecArray): string | undefined {
  const [, rawScheme, user, host, port, rawPath] = match as unknown as [
    string,
    string,
    string?,
    string?,
    string?,
    string?,
  ];
  const scheme = rawScheme.toLowerCase().replace(/^git\+/, '');
  if (!networkSchemes.has(scheme) || host === undefined || host === '') return undefined;
  const shownPort = port === undefined || port === '' || port === defaultPorts[scheme] ? undefined : port;
  const path = rawPath ?? '';
  if (scheme === 'ssh') {
    const login = user?.split(':')[0];
    return path.startsWith('/~/')
      ? sshLocator(login, host, shownPort, path.slice(3), false)
      : sshLocator(login, host, shownPort, path, true);
  }
  const name = host.toLowerCase();
  const trimmed = trimPath(path);
  if (isGitHub(name)) return `github.com${trimmed.toLowerCase()}`;
  const shownScheme = scheme === 'http' ? 'https' : scheme;
  const comparable = scheme === 'http' && shownPort === undefined ? undefined : shownPort;
  return `${shownScheme}://${name}${comparable === undefined ? '' : `:${comparable}`}${trimmed}`;
}

function sshLocator(
  login: string | undefined,
  host: string,
  port: string | undefined,
  path: string,
  absolute: boolean,
): string {
  const name = host.toLowerCase();
  const trimmed = trimPath(path);
  if (isGitHub(name)) return `github.com/${trimmed.replace(/^\//, '').toLowerCase()}`;
  const where = `${login === undefined || login === '' ? '' : `${login}@`}${name}${port === undefined ? '' : `:${port}`}`;
  return `ssh://${where}${absolute ? trimmed : `/~/${trimmed}`}`;
}

const isGitHub = (host: string): boolean =>
  host === 'github.com' || host === 'ssh.github.com' || host === 'www.github.com';

const trimPath = (path: string): string =>
  path
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .replace(/\/+$/, '');
