// In the place of Codex: `app-server proxy` over stdio and `app-server --listen unix://PATH`, with the few methods that
// Postbell asks for. What it does stands in `scene.json` beside it, and each start and request is a line of `log.jsonl`.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';

const invalid = (message) => ({ code: -32600, message });

/** @param {string} dir where the scene and the log lie */
export function run(dir) {
  const sceneFile = path.join(dir, 'scene.json');
  const scene = () => (existsSync(sceneFile) ? JSON.parse(readFileSync(sceneFile, 'utf8')) : {});
  const change = (over) => writeFileSync(sceneFile, JSON.stringify({ ...scene(), ...over }));
  const log = (entry) => appendFileSync(path.join(dir, 'log.jsonl'), `${JSON.stringify(entry)}\n`);
  const argv = process.argv.slice(2);
  log({ argv, env: process.env, cwd: process.cwd(), pid: process.pid });

  const { says, exits, hangs, child, holds } = scene();
  if (says) process.stderr.write(`${says}\n`);
  if (child) {
    const started = spawn('sleep', ['300'], { stdio: 'ignore' });
    log({ child: started.pid });
  }
  if (holds) log({ child: spawn('sleep', ['300'], { stdio: 'inherit', detached: true }).pid });
  if (exits !== undefined) return void process.exit(exits);
  if (hangs) return void setInterval(() => {}, 1_000);
  if (argv[0] === 'queue')
    return void process.stdout.write(`Queued message ${randomUUID()} for thread ${argv[2]}.\n`);

  const server = createServer((_, res) => res.writeHead(404).end());
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    const say = (message) => socket.send(JSON.stringify(message));
    socket.on('message', (data) => {
      const { id, method, params, ...rest } = JSON.parse(Buffer.concat([data].flat()).toString('utf8'));
      log({ id, method, params, ...rest });
      if (method === undefined || id === undefined) return;
      const now = scene();
      if (now.silent?.includes(method)) return;
      // The standard output of a process closes with it alone.
      if (now.drops?.includes(method)) return argv[1] === 'proxy' ? process.exit() : socket.terminate();
      const error = now.errors?.[method];
      const answer = now.answers?.[method] ?? (error ? { error } : methods[method]?.(params, now, say));
      const delayMs = now.delays?.[method] ?? 0;
      const reply = {
        id,
        ...(answer ?? { error: invalid(`Invalid request: unknown variant \`${method}\``) }),
      };
      if (delayMs > 0) setTimeout(() => say(reply), delayMs);
      else say(reply);
    });
  });

  let turns = 0;
  const methods = {
    initialize: () => ({ result: { userAgent: 'fake', codexHome: process.env.CODEX_HOME ?? null } }),
    'thread/start': (params) => ({
      result: { thread: { id: scene().thread ?? randomUUID() }, cwd: params.cwd },
    }),
    // `slips`: so many items are taken while a later page is asked for.
    'thread/queue/list': (params, { queue: all = [], slips = 0 }) => {
      const slipped = params.cursor !== undefined && slips > 0 ? 1 : 0;
      if (slipped > 0) change({ queue: all.slice(1), slips: slips - 1 });
      const queue = all.slice(slipped);
      const from = Number(params.cursor ?? 0);
      const data = queue.slice(from, from + params.limit).map(({ id, text, input }) => ({
        id,
        input: input ?? [{ type: 'text', text, text_elements: [] }],
      }));
      const next = from + params.limit;
      return { result: { data, nextCursor: next < queue.length ? String(next) : null } };
    },
    'thread/queue/start': ({ queuedSubmissionId }, { queue = [], busy = 0 }) => {
      if (busy > 0) {
        change({ busy: busy - 1 });
        return { error: invalid('thread already has an active or pending turn') };
      }
      if (!queue.some(({ id }) => id === queuedSubmissionId))
        return { error: invalid(`queued submission not found: ${queuedSubmissionId}`) };
      change({ queue: queue.filter(({ id }) => id !== queuedSubmissionId) });
      return { result: { turn: { id: 'turn-1' } } };
    },
    'turn/interrupt': () => ({ result: {} }),
    'turn/start': ({ threadId }, { turnMs = 0, asks = [], tells = [] }, say) => {
      turns += 1;
      const turn = { id: `turn-${turns}`, status: 'inProgress' };
      setTimeout(() => {
        say({ method: 'turn/started', params: { threadId, turn } });
        for (const [n, request] of asks.entries()) say({ id: 1000 + n, ...request });
        for (const notification of tells) say(notification);
      }, 0);
      setTimeout(
        () => say({ method: 'turn/completed', params: { threadId, turn: { ...turn, status: 'completed' } } }),
        turnMs,
      );
      return { result: { turn } };
    },
  };

  const listen = argv[argv.indexOf('--listen') + 1];
  if (argv[1] === 'proxy')
    server.emit('connection', Duplex.from({ readable: process.stdin, writable: process.stdout }));
  else server.listen(listen.slice('unix://'.length));
}
