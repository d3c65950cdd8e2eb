// The protocol's connection to an agent: requests and notifications as they go over its stdio. The library carries them; what
// an agent says in them is read by us, leniently, since agents are built on several releases of the protocol.

import { Readable, Writable } from 'node:stream';
import {
  type AnyMessage,
  client,
  DEFAULT_MAX_MESSAGE_BYTES,
  MessageTooLargeError,
  ndJsonStream,
  RequestError,
} from '@agentclientprotocol/sdk';
import { asText, isObject } from '../../protocol/json.ts';

/** The agent answered with an error. */
export class AgentRefused extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Nobody answers any more. */
export class LinkClosed extends Error {}

export interface Link {
  /** Rejects with `AgentRefused` or `LinkClosed`. An answer that is none is undefined: what was asked for may be done. */
  request(method: string, params: object): Promise<unknown>;
  notify(method: string, params: object): Promise<void>;
}

/** What the agent asks and tells. */
export interface LinkHandlers {
  onUpdate(params: unknown): void;
  /** `withdrawn`: the agent wants no answer any more. */
  onPermission(params: unknown, withdrawn: AbortSignal): Promise<object>;
}

/** @param closed told once nothing can come any more, and why where it was not the agent that closed */
export function linkTo(
  { input, output }: { input: Writable; output: Readable },
  handlers: LinkHandlers,
  closed: (why: string | undefined) => void,
): Link {
  const raw = (params: unknown): unknown => params;
  const app = client({ name: 'postbell' }).onRequest(
    'session/request_permission',
    raw,
    ({ params, signal }) => handlers.onPermission(params, signal),
  );
  const { readable, writable } = ndJsonStream(
    Writable.toWeb(input) as WritableStream<Uint8Array>,
    Readable.toWeb(output) as unknown as ReadableStream<Uint8Array>,
  );
  // The library would refuse what it does not know, and answers overtake what it takes its time to check.
  const others = new TransformStream<AnyMessage, AnyMessage>({
    transform: (message, controller) => {
      if ('method' in message && message.method === 'session/update') handlers.onUpdate(message.params);
      else controller.enqueue(isAnswer(message) ? answerIn(message) : message);
    },
  });
  const connection = app.connect({ readable: readable.pipeThrough(others), writable });
  const over = (): void =>
    closed(connection.signal.reason instanceof MessageTooLargeError ? tooLarge : undefined);
  connection.closed.then(over, over);
  const asked = (error: unknown): never => {
    if (error instanceof RequestError) throw new AgentRefused(error.code, error.message);
    throw new LinkClosed('the agent closed its connection', { cause: error });
  };
  return {
    request: (method, params) => connection.agent.request<unknown>(method, params).catch(asked),
    notify: (method, params) => connection.agent.notify(method, params).catch(asked),
  };
}

const tooLarge = `sent a message of more than ${DEFAULT_MAX_MESSAGE_BYTES / 1_048_576} MiB`;

const isAnswer = (message: AnyMessage): boolean => !('method' in message) && 'id' in message;

/** The library makes a refusal of what is no answer, or of one that says two things. */
function answerIn({ id, result, error }: Record<string, unknown>): AnyMessage {
  const about = { jsonrpc: '2.0', id: id as number } as const;
  const refused = error ?? null;
  if (isObject(refused) && Number.isInteger(refused.code) && (result ?? null) === null)
    return { ...about, error: { code: refused.code as number, message: asText(refused.message ?? '') } };
  return { ...about, result: refused === null ? result : undefined };
}
