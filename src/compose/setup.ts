// Writes the one config file of a host, and nothing else.

import { processEnvironment } from '../platform/environment.ts';
import { createPrivateOnce, ensureDirectory, replacePrivateFile } from '../platform/files.ts';
import { hostConfigFile, placesOf } from '../platform/paths.ts';
import { Fault, Refusal, type Result } from '../protocol/errors.ts';
import type { HostConfig } from '../protocol/host-config.ts';

/** @returns its path; refused where there is one already that is not to be replaced */
export function setUpHost(config: HostConfig, replace: boolean): Result<string> {
  if (process.platform === 'win32')
    throw new Fault('unsupported_platform', 'that nobody else reads a config cannot be made sure on Windows');
  const places = placesOf(processEnvironment);
  const file = hostConfigFile(places, config.host);
  ensureDirectory(places.directory);
  ensureDirectory(places.hostDirectory);
  const text = `${JSON.stringify(config, null, 2)}\n`;
  if (replace) replacePrivateFile(file, text);
  else if (!createPrivateOnce(file, text))
    return new Refusal('invalid_request', `there is a config already, ${file}; --replace writes it anew`, {
      path: file,
    });
  return file;
}
