// The probes of doctor, each asked for by a variable of its own. They prove what they say and no more: neither starts a
// router or a host, registers, sends, or wakes anybody.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '../platform/clock.ts';
import { type Environment, ownEnvironment } from '../platform/environment.ts';
import type { Places } from '../platform/paths.ts';
import { runProgram } from '../platform/programs.ts';
import { describeError } from '../protocol/errors.ts';
import { asText, isObject } from '../protocol/json.ts';
import { probe } from '../router/lifecycle.ts';
import { checkSocket } from '../router/socket-owner.ts';
import type { DoctorFacts, ProbeFacts } from '../surfaces/doctor/facts.ts';

const probeWaitMs = 15_000;
/** Whose loading proves that every adapter they hold can be. */
const bundles = ['hook', 'wait', 'mcp', 'router'];
const toolNames = ['message', 'receive_messages', 'acknowledge_messages'];
const messageActions = ['send', 'poll', 'fetch', 'intake', 'ack', 'receipts'];

export async function probesAskedFor(
  environment: Environment,
  { routerSocket }: Places,
): Promise<DoctorFacts['probes']> {
  return {
    ...(environment.POSTBELL_DOCTOR_PROBE_CAPABILITY === '1' && {
      capability: await probeCapability(environment),
    }),
    ...(environment.POSTBELL_DOCTOR_PROBE_ROUTER === '1' && { router: await probeRouter(routerSocket) }),
  };
}

/** `reachable`, `missing`, `insecure` or `unreachable`. */
async function probeRouter(socketPath: string): Promise<ProbeFacts> {
  const failed = (text: string): ProbeFacts => ({ passed: false, text });
  try {
    checkSocket(socketPath);
  } catch (error) {
    const { code, message } = describeError(error);
    return failed(code === 'insecure_path' ? `insecure: ${message}` : `missing: no socket at ${socketPath}`);
  }
  return (await probe(socketPath, systemClock)) === 'answers'
    ? { passed: true, text: 'reachable: the socket takes a connection; nothing was asked' }
    : failed(`unreachable: the socket at ${socketPath} takes no connection`);
}

/** The installed server's own schema, and the bundles that hold the adapters, with a home that is thrown away. */
async function probeCapability(environment: Environment): Promise<ProbeFacts> {
  const home = mkdtempSync(path.join(tmpdir(), 'postbell-probe-'));
  try {
    const kept = Object.entries(ownEnvironment(environment)).filter(
      ([name]) => !/^(POSTBELL|XDG)_/.test(name),
    );
    const env = { ...Object.fromEntries(kept), HOME: home, POSTBELL_HOME: path.join(home, 'data') };
    const wrong = (await wrongOfSchema(env, home)) ?? (await wrongOfImports(env, home));
    return wrong === undefined
      ? { passed: true, text: 'the MCP message schema is there and the adapters load; no host was asked' }
      : { passed: false, text: wrong };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function wrongOfSchema(env: Environment, cwd: string): Promise<string | undefined> {
  const asked = [
    {
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'postbell-doctor', version: '1' },
      },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list', params: {} },
  ];
  const input = asked.map((frame) => `${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`).join('');
  const words = [path.join(__dirname, 'postbell.cjs'), 'mcp', '--no-register'];
  const { stdout } = await runProgram(process.execPath, words, { env, cwd, input, timeoutMs: probeWaitMs });
  const tools = toolsIn(stdout);
  if (tools === undefined) return 'the installed MCP server does not list its tools';
  const lacking = toolNames.filter((name) => !tools.has(name));
  if (lacking.length > 0) return `the installed MCP server lacks ${lacking.join(', ')}`;
  const schema = JSON.stringify(tools.get('message'));
  const unknown = messageActions.filter((action) => !schema.includes(JSON.stringify(action)));
  return unknown.length > 0 ? `the tool message has no action ${unknown.join(', ')}` : undefined;
}

/** Schemas by the name of their tool. */
function toolsIn(stdout: string): Map<string, unknown> | undefined {
  for (const line of stdout.split('\n').filter(Boolean)) {
    const frame = parse(line);
    const result = isObject(frame) && frame.id === 2 ? frame.result : undefined;
    if (isObject(result) && Array.isArray(result.tools))
      return new Map(
        result.tools.filter(isObject).map(({ name, inputSchema }) => [asText(name), inputSchema]),
      );
  }
  return undefined;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function wrongOfImports(env: Environment, cwd: string): Promise<string | undefined> {
  for (const name of bundles) {
    const file = path.join(__dirname, `${name}.cjs`);
    const words = ['-e', 'require(process.argv[1])', file];
    const { code } = await runProgram(process.execPath, words, { env, cwd, timeoutMs: probeWaitMs });
    if (code !== 0) return `${file} cannot be loaded`;
  }
  return undefined;
}
