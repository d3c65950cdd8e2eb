// A model server for the real Codex: enough of the Responses API on loopback for it to run without a network.
// What Codex sent is kept as it came; replies follow the test's script.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { record } from './record.ts';

/** One item of a request's `input`; which fields exist depends on `type`. */
export interface CodexItem {
  type: string;
  role?: 'user' | 'assistant' | 'developer';
  content?: { type: string; text?: string }[];
  name?: string;
  namespace?: string;
  arguments?: string;
  call_id?: string;
  output?: unknown;
}

/** The body of `POST /v1/responses`. */
export interface ResponsesBody {
  model: string;
  instructions?: string;
  input: CodexItem[];
  tools?: { type: string; name?: string; tools?: { name?: string }[] }[];
}

export interface CodexRequest {
  /** The thread that asked. A side query asks from a hidden thread of its own. */
  thread: string;
  body: ResponsesBody;
  /** Of the header `x-codex-turn-metadata`: `turn_id`, `turn_trigger`, `thread_source`, `sandbox_mode` and more. */
  turn: Readonly<Record<string, unknown>>;
  /** True where Codex asks for a title: the script is not asked, the answer is a fixed one. */
  side: boolean;
  headers: IncomingMessage['headers'];
  /** Unix time, ms. */
  at: number;
  /** False until the reply was sent whole; stays false where Codex hung up first. */
  answered: boolean;
}

/** What a script decides by. */
export interface CodexTurn {
  thread: string;
  /** Counts the thread's requests from 1. */
  requestNumber: number;
  request: CodexRequest;
  /** All text of the user and developer messages after the last item of the model's own. */
  newest: string;
  /** Outputs of tools among the same newest items. `name` is empty where no call of that id precedes it. */
  outputs: { name: string; text: string }[];
}

/**
 * A call wins over what is said. `namespace` is `mcp__<server>` for a tool of an MCP server. `sleepMs` waits before
 * the reply begins; `status` of 400 or more answers an error instead.
 */
export interface CodexReply {
  say?: string;
  call?: string;
  args?: unknown;
  namespace?: string;
  sleepMs?: number;
  status?: number;
}

/** Absence of a reply means `{ say: 'ok' }`. A throw is a defect of the test: `close` rejects with it. */
export type CodexScript = (turn: CodexTurn) => CodexReply | undefined;

export interface CodexModel {
  /** Base of the provider, with `/v1`. */
  url: string;
  requests: CodexRequest[];
  /** Side queries excepted. */
  requestsOf(thread: string): CodexRequest[];
  /** Every text of the request: instructions, messages, calls and outputs. */
  text(request: CodexRequest): string;
  /** The first request at index `from` or later, past or to come, that fits; rejects after `ms`. */
  waitFor(predicate: (request: CodexRequest) => boolean, ms: number, from?: number): Promise<CodexRequest>;
  close(): Promise<void>;
}

/** Lines of `config.toml` that make Codex use the model at `url`, offline and without a daemon of its own. */
export const codexModelConfig = (url: string): string => `model = "fixture-model"
model_provider = "fixture"
check_for_update_on_startup = false

[model_providers.fixture]
name = "fixture"
base_url = "${url}"
wire_api = "responses"
env_key = "FIXTURE_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[features]
daemon_auto_start = false
`;

/** A host that never comes to rest is stopped here rather than by the disk. */
const requestsMax = 500;

const outputText = (output: unknown): string =>
  typeof output === 'string' ? output : JSON.stringify(output);
const messageText = (item: CodexItem): string =>
  (item.content ?? []).map((part) => part.text ?? '').join('\n');

function itemText(item: CodexItem): string {
  if (item.type === 'message') return messageText(item);
  return item.type.endsWith('_output') ? outputText(item.output) : (item.arguments ?? JSON.stringify(item));
}

const isOwn = ({ type, role }: CodexItem): boolean =>
  type === 'message' ? role === 'assistant' : type.endsWith('_call') || type === 'reasoning';

function turnOf(request: CodexRequest, requestNumber: number): CodexTurn {
  const { input } = request.body;
  const newest = input.slice(input.findLastIndex(isOwn) + 1);
  const callOf = (id: string | undefined) =>
    input.find((item) => item.type.endsWith('_call') && item.call_id === id);
  return {
    thread: request.thread,
    requestNumber,
    request,
    newest: newest
      .filter(({ type }) => type === 'message')
      .map(messageText)
      .join('\n'),
    outputs: newest
      .filter(({ type }) => type.endsWith('_output'))
      .map((item) => ({
        name: item.name ?? callOf(item.call_id)?.name ?? '',
        text: outputText(item.output),
      })),
  };
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let raw = '';
  for await (const chunk of req.setEncoding('utf8')) raw += chunk as string;
  return raw;
}

function sendJson(res: ServerResponse, status: number, value: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(value));
}

const apiError = (message: string) => ({ error: { message, type: 'server_error' } });

function itemOf({ say, call, args, namespace }: CodexReply, n: number): object {
  if (call === undefined) {
    const content = [{ type: 'output_text', text: say ?? 'ok', annotations: [] }];
    return { type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content };
  }
  const called = { name: call, arguments: JSON.stringify(args ?? {}), ...(namespace && { namespace }) };
  return { type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, status: 'completed', ...called };
}

/** Sends one item as the events of a whole response. */
function sendItem(
  res: ServerResponse,
  n: number,
  model: string,
  item: object,
  said: string | undefined,
): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  let sequence = 0;
  const send = (type: string, data: object) => {
    const event = { type, sequence_number: sequence++, ...data };
    res.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
  };
  const base = { id: `resp_${n}`, object: 'response', created_at: Math.floor(Date.now() / 1000), model };
  send('response.created', { response: { ...base, status: 'in_progress', output: [] } });
  if (said !== undefined) {
    const begun = { ...item, status: 'in_progress', content: [] };
    send('response.output_item.added', { output_index: 0, item: begun });
    const place = { item_id: `msg_${n}`, output_index: 0, content_index: 0 };
    send('response.output_text.delta', { ...place, delta: said });
  }
  send('response.output_item.done', { output_index: 0, item });
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 110,
  };
  send('response.completed', { response: { ...base, status: 'completed', output: [item], usage } });
  res.end();
}

function requestOf({ headers }: IncomingMessage, raw: string): CodexRequest {
  const turn = JSON.parse(String(headers['x-codex-turn-metadata'] ?? '{}')) as Record<string, unknown>;
  return {
    thread: String(headers['thread-id'] ?? ''),
    body: JSON.parse(raw) as ResponsesBody,
    turn,
    side: turn.thread_source === 'thread_title',
    headers,
    at: Date.now(),
    answered: false,
  };
}

/** Starts a model server on a free loopback port. */
export async function startCodexModel(script: CodexScript): Promise<CodexModel> {
  const requests = record<CodexRequest>('model request');
  const requestsOf = (thread: string) =>
    requests.items.filter((request) => !request.side && request.thread === thread);
  const defects: unknown[] = [];
  const closing = new AbortController();

  async function answer(request: CodexRequest, res: ServerResponse): Promise<void> {
    const n = requests.items.indexOf(request);
    const turn = turnOf(request, requestsOf(request.thread).length);
    const reply = request.side ? { say: 'A title' } : (script(turn) ?? {});
    if (reply.sleepMs) await pause(reply.sleepMs, undefined, { signal: closing.signal });
    if (res.destroyed) return;
    if (reply.status && reply.status >= 400)
      return sendJson(res, reply.status, apiError('an error by script'));
    const said = reply.call === undefined ? (reply.say ?? 'ok') : undefined;
    res.on('finish', () => {
      request.answered = true;
    });
    sendItem(res, n, request.body.model, itemOf(reply, n), said);
  }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname } = new URL(req.url ?? '/', 'http://loopback');
    const raw = await bodyOf(req);
    if (req.method === 'GET' && pathname.endsWith('/models'))
      return sendJson(res, 200, { object: 'list', data: [], models: [] });
    if (req.method !== 'POST' || !pathname.endsWith('/responses'))
      return sendJson(res, 404, apiError('no such endpoint'));
    if (requests.items.length >= requestsMax) throw new Error(`more than ${requestsMax} model requests`);
    const request = requestOf(req, raw);
    requests.add(request);
    await answer(request, res);
  }

  const server = createServer((req, res) => {
    serve(req, res).catch((error: unknown) => {
      if (closing.signal.aborted) return void res.destroy();
      defects.push(error);
      if (!res.headersSent) sendJson(res, 400, apiError(`fixture: ${String(error)}`));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: requests.items,
    requestsOf,
    text: ({ body }) => [body.instructions ?? '', ...body.input.map(itemText)].join('\n'),
    waitFor: requests.waitFor,
    async close() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      if (defects.length > 0)
        throw new AggregateError(defects, 'the model script or a request was defective');
    },
  };
}
