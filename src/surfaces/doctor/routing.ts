// Rows of the router: its socket, and which version runs. None of them starts one.

import type { Finding } from '../../protocol/doctor.ts';
import { limits } from '../../protocol/limits.ts';
import { compareVersions } from '../../protocol/semver.ts';
import { type DoctorFacts, shellWord, unseen } from './facts.ts';

const shorter = 'set POSTBELL_ROUTER_SOCKET to a shorter absolute path, or use a shorter home';
const notRunning: Finding = { level: 'info', text: 'no router runs; the next session starts one' };

export function routerSocket({ router }: DoctorFacts): Finding {
  const { path, bytes, invalid, socket, why } = router;
  if (bytes > limits.socketPathBytesMax)
    return {
      level: 'fail',
      text: `the path of the socket has ${bytes} of at most ${limits.socketPathBytesMax} bytes: ${path}; no session can be rung through a router, and mail is kept`,
      hint: shorter,
    };
  if (invalid !== undefined)
    return {
      level: 'fail',
      text: invalid,
      hint: 'set POSTBELL_ROUTER_SOCKET to an absolute path, or unset it',
    };
  if (socket === 'insecure')
    return {
      level: 'fail',
      text: `insecure: ${why}`,
      hint: `make ${shellWord(path)} and its directory private, or move what lies there and set POSTBELL_ROUTER_SOCKET`,
    };
  if (socket === 'unseen') return unseen(`${why}`, 'look at the directory of the socket');
  const room = `${bytes} of ${limits.socketPathBytesMax} bytes`;
  if (socket === 'missing')
    return { level: 'info', text: `missing, as long as no router runs: ${path} (${room})` };
  return { level: 'pass', text: `private to this account: ${path} (${room})` };
}

export function routerVersion({ router, version }: DoctorFacts): Finding {
  if (router.bytes > limits.socketPathBytesMax || router.invalid !== undefined)
    return unseen('no router can have that path', shorter);
  if (router.socket === 'insecure' || router.socket === 'unseen')
    return unseen(`the socket is ${router.socket}`, 'mend what the row router-socket says');
  const { running } = router;
  if (router.socket === 'missing' || running === undefined) return notRunning;
  if ('failed' in running)
    return unseen(running.failed, 'postbell router stop; the next session starts another');
  const order = running.version === undefined ? undefined : compareVersions(running.version, version);
  if (order === 0) return { level: 'pass', text: `version ${version}, as installed` };
  if (order !== undefined && order > 0)
    return {
      level: 'warn',
      text: `version ${running.version} runs, newer than ${version}, which looks here`,
      hint: 'leave one version installed: see the row install',
    };
  return {
    level: 'warn',
    text: `${running.version === undefined ? 'one without a version' : `version ${running.version}`} runs, older than ${version}; it ends when the next session registers`,
    hint: 'postbell router stop; the next session starts the installed one',
  };
}
