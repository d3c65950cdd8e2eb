// A model server for real ACP agents, on loopback: OpenAI's two APIs, Anthropic's and Gemini's, as far as the agents need
// them. Its model reads the mail that a notice tells of, acknowledges it, and says that it is done.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Fields = Record<string, unknown>;

interface Tool {
  name: string;
  namespace?: string;
}

/** What a request ends with, and what may be called. */
interface Asked {
  /** The newest words of the user, or what a tool answered. */
  text: string;
  fromTool: boolean;
  tools: Tool[];
}

type Reply = { say: string } | { tool: Tool; input: object };

export interface AcpModel {
  url: string;
  /** The bodies that came, as they came. */
  bodies: string[];
  close(): Promise<void>;
}

const list = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : []);
const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));

/** An agent may leave a tool of a server unlisted, and take a call of it all the same. */
const ofServer = (name: string): Tool => ({ name: `mcp__postbell__${name}` });

function replyTo({ text, fromTool, tools }: Asked): Reply {
  const tool = (name: string): Tool => tools.find((one) => one.name.endsWith(name)) ?? ofServer(name);
  if (!fromTool) {
    const isNotice = text.includes('[Postbell inbox notice]') && tools.length > 0;
    return isNotice ? { tool: tool('receive_messages'), input: {} } : { say: 'ok' };
  }
  const ids = [...text.matchAll(/msg_id\W+(msg_\w+)/g)].map(([, id]) => id);
  if (ids.length === 0) return { say: 'done' };
  const messages = [...new Set(ids)].map((msg_id) => ({ sender: 'local', msg_id }));
  return { tool: tool('acknowledge_messages'), input: { messages } };
}

const json = (res: ServerResponse, value: unknown, status = 200): ServerResponse =>
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

function events(res: ServerResponse, frames: readonly unknown[], named = false): ServerResponse {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const frame of frames) {
    if (named) res.write(`event: ${textOf(fields(frame).type)}\n`);
    res.write(`data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`);
  }
  return res.end();
}

const idOf = (prefix: string): string => `${prefix}_${Math.random().toString(36).slice(2)}`;

function chat(res: ServerResponse, body: Fields): ServerResponse {
  const last = fields(list(body.messages).at(-1));
  const tools = list(body.tools).map((one) => ({ name: textOf(fields(one.function).name) }));
  const reply = replyTo({ text: textOf(last.content), fromTool: last.role === 'tool', tools });
  const base = { id: idOf('chat'), created: 1, model: body.model, object: 'chat.completion.chunk' };
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const said = 'say' in reply ? reply.say : null;
  if (body.stream !== true) {
    const choice = { index: 0, message: { role: 'assistant', content: said ?? 'ok' }, finish_reason: 'stop' };
    return json(res, { ...base, object: 'chat.completion', choices: [choice], usage });
  }
  const call = 'tool' in reply && {
    tool_calls: [
      {
        index: 0,
        id: idOf('call'),
        type: 'function',
        function: { name: reply.tool.name, arguments: JSON.stringify(reply.input) },
      },
    ],
  };
  const chunk = (delta: object, finish_reason: string | null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  });
  return events(res, [
    chunk({ role: 'assistant', content: said, ...call }, null),
    chunk({}, call ? 'tool_calls' : 'stop'),
    { ...base, choices: [], usage },
    '[DONE]',
  ]);
}

function responses(res: ServerResponse, body: Fields): ServerResponse {
  const input = list(body.input);
  const last = fields(input.at(-1));
  const fromTool = last.type === 'function_call_output';
  const tools = list(body.tools).flatMap((one) =>
    one.type === 'namespace'
      ? list(one.tools).map(({ name }) => ({ name: textOf(name), namespace: textOf(one.name) }))
      : [{ name: textOf(one.name) }],
  );
  const words = input.findLast(({ role }) => role === 'user');
  const reply = replyTo({ text: textOf(fromTool ? last.output : words?.content), fromTool, tools });
  const item =
    'tool' in reply
      ? {
          type: 'function_call',
          id: idOf('fc'),
          call_id: idOf('call'),
          status: 'completed',
          ...reply.tool,
          arguments: JSON.stringify(reply.input),
        }
      : {
          type: 'message',
          id: idOf('msg'),
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: reply.say, annotations: [] }],
        };
  const response = { id: idOf('resp'), object: 'response', model: body.model };
  const usage = {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 12,
  };
  const begun = { ...response, status: 'in_progress', output: [] };
  const done = { ...response, status: 'completed', output: [item], usage };
  const frames = [
    { type: 'response.created', response: begun },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: done },
  ];
  return events(res, frames, true);
}

function messages(res: ServerResponse, body: Fields): ServerResponse {
  const last = fields(list(body.messages).findLast(({ role }) => role === 'user'));
  const result = list(last.content).find(({ type }) => type === 'tool_result');
  const tools = list(body.tools).map(({ name }) => ({ name: textOf(name) }));
  const text = textOf(result ? result.content : last.content);
  const reply = replyTo({ text, fromTool: result !== undefined, tools });
  const usage = { input_tokens: 7, output_tokens: 5 };
  const message = { id: idOf('msg'), type: 'message', role: 'assistant', model: body.model, usage };
  const block =
    'tool' in reply
      ? { type: 'tool_use', id: idOf('toolu'), name: reply.tool.name, input: {} }
      : { type: 'text', text: '' };
  const stop_reason = 'tool' in reply ? 'tool_use' : 'end_turn';
  if (body.stream !== true) {
    const content = [{ type: 'text', text: 'say' in reply ? reply.say : 'ok' }];
    return json(res, { ...message, content, stop_reason: 'end_turn', stop_sequence: null });
  }
  const delta =
    'tool' in reply
      ? { type: 'input_json_delta', partial_json: JSON.stringify(reply.input) }
      : { type: 'text_delta', text: reply.say };
  const frames = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
  return events(res, frames, true);
}

function gemini(res: ServerResponse, body: Fields, stream: boolean): ServerResponse {
  const last = fields(list(body.contents).findLast(({ role }) => role !== 'model'));
  const results = list(last.parts).filter(({ functionResponse }) => functionResponse !== undefined);
  const tools = list(body.tools)
    .flatMap(({ functionDeclarations }) => list(functionDeclarations))
    .map(({ name }) => ({ name: textOf(name) }));
  const fromTool = results.length > 0;
  const reply = replyTo({ text: textOf(fromTool ? results : last.parts), fromTool, tools });
  // A side question of the agent: which of its models to use.
  const wantsJson = fields(body.generationConfig).responseMimeType === 'application/json';
  const words = wantsJson ? JSON.stringify({ reasoning: 'x', model_choice: 'flash' }) : 'ok';
  const part =
    'tool' in reply
      ? { functionCall: { name: reply.tool.name, args: reply.input } }
      : { text: wantsJson ? words : reply.say };
  const answer = {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 },
    modelVersion: 'fixture',
  };
  return stream ? events(res, [answer]) : json(res, answer);
}

function answer(path: string, body: Fields, res: ServerResponse): ServerResponse {
  if (path.endsWith('/chat/completions')) return chat(res, body);
  if (path.endsWith('/responses')) return responses(res, body);
  if (path.endsWith('/messages/count_tokens')) return json(res, { input_tokens: 7 });
  if (path.endsWith('/messages')) return messages(res, body);
  if (path.endsWith(':countTokens')) return json(res, { totalTokens: 7 });
  if (path.endsWith(':generateContent')) return gemini(res, body, false);
  if (path.endsWith(':streamGenerateContent')) return gemini(res, body, true);
  return json(res, { error: { message: 'no such endpoint' } }, 404);
}

async function textIn(req: IncomingMessage): Promise<string> {
  let raw = '';
  for await (const chunk of req.setEncoding('utf8')) raw += chunk as string;
  return raw;
}

export async function startAcpModel(): Promise<AcpModel> {
  const bodies: string[] = [];
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const raw = await textIn(req);
    const { pathname } = new URL(req.url ?? '/', 'http://loopback');
    if (req.method === 'POST') bodies.push(raw);
    answer(pathname, fields(JSON.parse(raw === '' ? '{}' : raw)), res);
  };
  const server = createServer((req, res) => {
    serve(req, res).catch(() => res.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
