// Origins of relays as they are listed, signed and compared: one origin has one text.

const form = /^https?:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?$/;
const charactersMax = 255;

/** Whether it is scheme (http or https), host and, unless it is the scheme's own, port, as the URL standard writes an origin. */
export function isCanonicalOrigin(text: string): boolean {
  if (text.length > charactersMax || !form.test(text)) return false;
  return URL.canParse(text) && new URL(text).origin === text;
}

export const originRule =
  'an origin is http:// or https://, a host in lower case and, where it is not the usual one, a port: no path, no user';
