// Writes the one config file of a host, and nothing else.

import { processEnvironment } from '../platform/environment.ts';
import { createPrivateOnce, ensureDirectory, replacePrivateFile } from '../platform/files.ts';
import { directoryAt } from '../platform/look.ts';
import { hostConfigFile, placesOf } from '../platform/paths.ts';
import { Fault, isRefusal, Refusal, type Result } from '../protocol/errors.ts';
import { type HostConfig, readHostConfig } from '../protocol/host-config.ts';
import { quoted } from '../protocol/json.ts';
import type { Written } from '../surfaces/cli/agent.ts';

/** Refused where there is one already that is not to be replaced, or what it says could not be read again. */
export function setUpHost(given: HostConfig, replace: boolean): Result<Written> {
  if (process.platform === 'win32')
    throw new Fault('unsupported_platform', 'that nobody else reads a config cannot be made sure on Windows');
  const places = placesOf(processEnvironment);
  const config = withRealWorkspace(given);
  if (isRefusal(config)) return config;
  const text = `${JSON.stringify(config, null, 2)}\n`;
  const read = readHostConfig(config.host, text);
  if (isRefusal(read)) return read;
  const file = hostConfigFile(places, config.host);
  ensureDirectory(places.directory);
  ensureDirectory(places.hostDirectory);
  if (replace) replacePrivateFile(file, text);
  else if (!createPrivateOnce(file, text))
    return new Refusal('invalid_request', `there is a config already, ${file}; --replace writes it anew`, {
      path: file,
    });
  return { path: file, config };
}

/** One directory has one name, whichever link led there. */
function withRealWorkspace(config: HostConfig): Result<HostConfig> {
  if (config.workspace === undefined) return config;
  const workspace = directoryAt(config.workspace);
  return workspace === undefined
    ? new Refusal(
        'invalid_request',
        `the workspace ${quoted(config.workspace)} is no directory that is there`,
      )
    : { ...config, workspace };
}
