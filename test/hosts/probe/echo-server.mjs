// A stdio MCP server with one tool, `echo`. It ends with its input and by signal, as a host's child must.
import { createInterface } from 'node:readline';

const tool = {
  name: 'echo',
  description: 'Answers the text it is given',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
};

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'echo', version: '0.0.1' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': (params) => ({ content: [{ type: 'text', text: `echo: ${params.arguments.text}` }] }),
  ping: () => ({}),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = methods[method]
    ? { result: methods[method](params) }
    : { error: { code: -32601, message: 'no such method' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
lines.on('close', () => process.exit(0));
