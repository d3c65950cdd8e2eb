// The product as a person runs it: the bundled program, in a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
export const program = path.join(root, 'dist', 'postbell.cjs');

export type Env = { [name: string]: string };

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** No command takes longer; what does is killed, and its test fails. */
const commandMs = 25_000;
/** Commands that still run, by the home they run in. */
const running = new Map<ChildProcess, string | undefined>();

/** Kills what still runs in this home: a test that failed did not wait for it. */
export function endCommands(home: string): void {
  for (const [child, of] of running) if (of === home) child.kill('SIGKILL');
}

/** How a process is started; `plain` where the modes of files count, also where root runs the tests. */
export const startOf = (words: string[], plain: boolean, from = program): [string, string[]] =>
  plain && process.getuid?.() === 0
    ? ['setpriv', ['--bounding-set=-all', '--inh-caps=-all', process.execPath, from, ...words]]
    : [process.execPath, [from, ...words]];

/** Runs one command to its end; `plain` without root's power over modes. */
export function postbell(
  env: Env,
  cwd: string,
  words: string[],
  input = '',
  plain = false,
): Promise<Finished> {
  const [file, args] = startOf(words, plain);
  return finished(file, args, env, cwd, input);
}

/** Runs another program to its end, in the same way. */
export function finished(file: string, args: string[], env: Env, cwd: string, input = ''): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, env });
    running.set(child, env.HOME);
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not within ${commandMs} ms: ${path.basename(file)} ${args.join(' ')}`));
    }, commandMs);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(late);
      running.delete(child);
      resolve({ code, stdout, stderr });
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** The one JSON line of a command that succeeds. */
export async function answer(
  env: Env,
  cwd: string,
  words: string[],
  input = '',
): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await postbell(env, cwd, words, input);
  if (code !== 0) throw new Error(`${words.slice(0, 2).join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

export interface Receipt {
  receipt_kind: string;
  value: string;
  actor: string;
  source: string;
  recorded_at: string;
  [more: string]: unknown;
}

/** Every fact known of one message. */
export async function factsOf(
  env: Env,
  cwd: string,
  scope: { project: string; recipient: string; message_id: string },
) {
  const { project, recipient, message_id } = scope;
  const words = [
    'message',
    'receipts',
    '--project',
    project,
    '--recipient',
    recipient,
    '--message-id',
    message_id,
  ];
  const found = await answer(env, cwd, words);
  return { state: found.delivery_state as string, receipts: found.receipts as Receipt[] };
}

/** Ends the router that the sessions started, if one runs. */
export async function stopRouter(env: Env, cwd: string): Promise<void> {
  const { code, stdout } = await postbell(env, cwd, ['router', 'status']);
  if (code !== 0) return;
  const { pid } = JSON.parse(stdout) as { pid: number };
  await postbell(env, cwd, ['router', 'stop']);
  for (let tries = 0; tries < 100 && alive(pid); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
}

/** `postbell up` as a person leaves it running; resolves once its router runs. */
export async function startUp(
  env: Env,
  cwd: string,
): Promise<{ pid: number; lines(): string; end(): Promise<number | null> }> {
  const child = spawn(process.execPath, [program, 'up'], { cwd, env });
  let text = '';
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('router running')) resolve();
    });
    void exited.then(() => reject(new Error(`postbell up ended: ${text}`)));
  });
  const end = (): Promise<number | null> => {
    child.kill('SIGTERM');
    return exited;
  };
  return { pid: child.pid as number, lines: () => text, end };
}

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
