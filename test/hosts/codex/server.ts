// A throw-away Codex home with a scripted model, and the app-server that its terminals, its queue and the router share.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type AppServer, connectAppServer } from '../../../src/hosts/codex/app-server.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { hostProgram } from '../../../tools/hosts.mjs';
import { until } from '../../process/home.ts';
import { alive, type Env } from '../../process/postbell.ts';
import { type CodexModel, type CodexScript, codexModelConfig, startCodexModel } from '../codex-model.ts';

const run = promisify(execFile);

export interface CodexHome {
  dir: string;
  home: string;
  work: string;
  program: string;
  env: Env;
  model: CodexModel;
  /** Starts the shared server, and connects to it. */
  serve(): Promise<AppServer>;
  /** Kills that server, so that none answers. */
  stopServing(): Promise<void>;
  /** `codex queue`. @returns the id of the submission */
  queue(thread: string, text: string): Promise<string>;
  atEnd(end: () => unknown): void;
  end(): Promise<void>;
}

export async function openCodexHome(script: CodexScript): Promise<CodexHome> {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'pb-')));
  const home = path.join(dir, 'codex');
  const work = path.join(dir, 'shop');
  for (const folder of [home, work]) mkdirSync(folder);
  const model = await startCodexModel(script);
  const trusted = `\n[projects.${JSON.stringify(work)}]\ntrust_level = "trusted"\n`;
  writeFileSync(path.join(home, 'config.toml'), codexModelConfig(model.url) + trusted);
  const program = hostProgram('codex') as string;
  const env: Env = {
    PATH: process.env.PATH as string,
    HOME: dir,
    CODEX_HOME: home,
    POSTBELL_HOME: path.join(dir, 'data'),
    FIXTURE_API_KEY: 'none',
    TERM: 'xterm-256color',
  };
  const ending: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true }), model.close];
  let server: ChildProcess | undefined;
  const stopServing = async (): Promise<void> => {
    const pid = server?.pid;
    if (pid === undefined) return;
    server = undefined;
    process.kill(-pid, 'SIGKILL');
    await until('the app-server has ended', () => !alive(pid));
  };
  ending.push(stopServing);
  return {
    dir,
    home,
    work,
    program,
    env,
    model,
    stopServing,
    serve: async () => {
      server = spawn(program, ['app-server', '--listen', 'unix://'], {
        cwd: work,
        env,
        stdio: 'ignore',
        detached: true,
      });
      const client = await untilConnected(path.join(home, 'app-server-control', 'app-server-control.sock'));
      ending.push(() => client.close());
      return client;
    },
    queue: async (thread, text) => {
      const words = ['queue', '--thread', thread, '--message', text];
      const { stdout } = await run(program, words, { env, cwd: work });
      return /Queued message (\S+) for/.exec(stdout)?.[1] as string;
    },
    atEnd: (end) => void ending.push(end),
    end: async () => {
      const faults: unknown[] = [];
      for (const end of ending.splice(0).reverse())
        await Promise.resolve()
          .then(end)
          .catch((error: unknown) => faults.push(error));
      if (faults.length > 0) throw faults[0];
    },
  };
}

/** A client of the app-server, once that answers at its socket. */
export async function untilConnected(socketPath: string): Promise<AppServer> {
  let found: AppServer | undefined;
  await until('the app-server answers', async () => {
    const answer = await connectAppServer(connect(socketPath), { clock: systemClock, waitMs: 5_000 });
    if (typeof answer === 'object') found = answer;
    return found !== undefined;
  });
  return found as AppServer;
}

/** The result of a request that must succeed. */
export async function result(
  server: AppServer,
  method: string,
  params: object,
): Promise<Record<string, unknown>> {
  const reply = await server.request(method, params, 20_000);
  if (!('result' in reply)) throw new Error(`${method}: ${JSON.stringify(reply)}`);
  return reply.result;
}

export const says = (text: string) => [{ type: 'text', text, text_elements: [] }];
