// A model server for real hosts: enough of the Messages API on loopback for a host to run without a network.
// What a host sent is kept as it came; replies follow the test's script.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { record } from './record.ts';

/** One content block of a message; which fields exist depends on `type`. */
export interface Block {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  input?: unknown;
  tool_use_id?: string;
  content?: string | Block[];
}

/** A message as the host sends it. Hosts put hook context in messages of role `system`. */
export interface Message {
  role: 'user' | 'assistant' | 'system';
  content: string | Block[];
}

/** The body of `POST /v1/messages`. */
export interface MessagesBody {
  model: string;
  system?: string | Block[];
  messages: Message[];
  tools?: { name: string }[];
  stream?: boolean;
}

/** One request to `/v1/messages`; `session` is empty where the host sent no session header. */
export interface ModelRequest {
  session: string;
  body: MessagesBody;
  /** Unix time, ms. */
  at: number;
}

/** A tool's answer in the newest messages; `name` is empty where no tool use of that id precedes it. */
export interface ToolResult {
  id: string;
  name: string;
  text: string;
}

/** What a script decides by. `requestNumber` counts the session's requests from 1, side queries too. */
export interface Turn {
  session: string;
  requestNumber: number;
  body: MessagesBody;
  /**
   * All text, tool results excepted, of the user and system messages after the last assistant message. In a session's
   * first request that has some thousand words of the host's own beside the prompt: look for marks, not for words.
   */
  newest: string;
  toolResults: ToolResult[];
  /** False for a side query of the host (title, classifier): it is answered with text only. */
  hasTools: boolean;
}

/** `status` of 400 or more answers with an API error instead; note that hosts repeat 429 and 5xx. */
export interface Reply {
  say?: string;
  tools?: { name: string; input: unknown }[];
  sleepMs?: number;
  status?: number;
}

/**
 * Answers a turn. A compaction is a turn too, with tools, whose `newest` asks for a `<summary>` block: a reply without
 * one is asked for again. Absence of a reply means `{ say: 'ok' }`. A throw is a defect of the test:
 * `close` rejects with it.
 */
export type Script = (turn: Turn) => Reply | undefined;

export interface Model {
  url: string;
  requests: ModelRequest[];
  requestsOf(session: string): ModelRequest[];
  /** Every text in the request: system prompt, messages, tool inputs (as JSON) and tool results. */
  text(request: ModelRequest): string;
  /** The first request at index `from` or later, past or to come, that fits; rejects after `ms`. */
  waitFor(predicate: (request: ModelRequest) => boolean, ms: number, from?: number): Promise<ModelRequest>;
  close(): Promise<void>;
}

const textOf = (content: string | Block[] | undefined): string =>
  typeof content === 'string' ? content : (content ?? []).map(blockText).join('\n');

function blockText(block: Block): string {
  if (block.type === 'tool_use') return JSON.stringify(block.input);
  return block.type === 'tool_result' ? textOf(block.content) : (block.text ?? '');
}

const blocksOf = ({ content }: Message): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Reads out of a request what scripts decide by. */
function turnOf(request: ModelRequest, requestNumber: number): Turn {
  const { session, body } = request;
  const last = body.messages.findLastIndex((message) => message.role === 'assistant');
  const newest = body.messages.slice(last + 1).flatMap(blocksOf);
  const uses = last < 0 ? [] : blocksOf(body.messages[last]!).filter((block) => block.type === 'tool_use');
  const results = newest.filter((block) => block.type === 'tool_result');
  return {
    session,
    requestNumber,
    body,
    newest: newest.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : [])).join('\n'),
    toolResults: results.map((block) => ({
      id: block.tool_use_id ?? '',
      name: uses.find((use) => use.id === block.tool_use_id)?.name ?? '',
      text: textOf(block.content),
    })),
    hasTools: (body.tools ?? []).length > 0,
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

const apiError = (type: string, message: string) => ({ type: 'error', error: { type, message } });

/** Sends content blocks as one message, whole or as server-sent events. */
function sendMessage(res: ServerResponse, id: string, body: MessagesBody, content: Block[]): void {
  const stopReason = content.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn';
  const usage = { input_tokens: 100, output_tokens: 10 };
  const message = { id, type: 'message', role: 'assistant', model: body.model, usage, stop_sequence: null };
  if (!body.stream) {
    sendJson(res, 200, { ...message, content, stop_reason: stopReason });
    return;
  }
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = (type: string, data: object) =>
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  send('message_start', { message: { ...message, content: [], stop_reason: null } });
  for (const [index, block] of content.entries()) {
    const tool = block.type === 'tool_use';
    const delta = tool
      ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      : { type: 'text_delta', text: block.text };
    send('content_block_start', {
      index,
      content_block: tool ? { ...block, input: {} } : { ...block, text: '' },
    });
    send('content_block_delta', { index, delta });
    send('content_block_stop', { index });
  }
  send('message_delta', {
    delta: { stop_reason: stopReason, stop_sequence: null },
    usage: { output_tokens: usage.output_tokens },
  });
  send('message_stop', {});
  res.end();
}

/** Starts a model server on a free loopback port. */
export async function startModel(script: Script): Promise<Model> {
  const requests = record<ModelRequest>('model request');
  const requestsOf = (session: string) => requests.items.filter((request) => request.session === session);
  const defects: unknown[] = [];
  const closing = new AbortController();

  async function answer(request: ModelRequest, res: ServerResponse): Promise<void> {
    const turn = turnOf(request, requestsOf(request.session).length);
    const reply = script(turn) ?? {};
    if (reply.sleepMs) await pause(reply.sleepMs, undefined, { signal: closing.signal });
    const { status = 200 } = reply;
    if (status >= 400) return sendJson(res, status, apiError('api_error', 'an error by script'));
    const id = `fixture_${requests.items.indexOf(request)}`;
    const tools = turn.hasTools ? (reply.tools ?? []) : [];
    const said = reply.say ?? (tools.length > 0 ? '' : 'ok');
    const content: Block[] = said ? [{ type: 'text', text: said }] : [];
    for (const [n, tool] of tools.entries())
      content.push({ type: 'tool_use', id: `toolu_${id}_${n}`, ...tool });
    sendMessage(res, `msg_${id}`, request.body, content);
  }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname } = new URL(req.url ?? '/', 'http://loopback');
    if (req.method === 'HEAD') return void res.writeHead(200).end();
    const raw = await bodyOf(req);
    if (pathname === '/v1/messages/count_tokens') return sendJson(res, 200, { input_tokens: 100 });
    if (req.method !== 'POST' || pathname !== '/v1/messages') {
      return sendJson(res, 404, apiError('not_found_error', 'no such endpoint'));
    }
    const session = String(req.headers['x-claude-code-session-id'] ?? '');
    const request = { session, body: JSON.parse(raw) as MessagesBody, at: Date.now() };
    requests.add(request);
    await answer(request, res);
  }

  const server = createServer((req, res) => {
    serve(req, res).catch((error: unknown) => {
      if (closing.signal.aborted) return void res.destroy();
      defects.push(error);
      // 400, because hosts repeat a 500.
      if (!res.headersSent)
        sendJson(res, 400, apiError('invalid_request_error', `fixture: ${String(error)}`));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: requests.items,
    requestsOf,
    text: ({ body }) =>
      [textOf(body.system), ...body.messages.map(({ content }) => textOf(content))].join('\n'),
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
