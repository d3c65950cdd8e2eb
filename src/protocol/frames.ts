// The router's wire, version 1: one JSON object a line over a Unix socket, each with v, type, request_id and hops.
// An answer repeats request_id. The lists are closed.

import { type ErrorCode, isErrorCode, Refusal, type Result } from './errors.ts';
import { isObject, type Json } from './json.ts';
import { limits } from './limits.ts';
import { characters, isWellFormed } from './scope.ts';
import { adapterKinds, bells, hostKinds } from './session.ts';

const wireVersion = 1;

type Check<T> = (value: unknown) => value is T;

const text = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= 1_000;
const summary = (value: unknown): value is string =>
  typeof value === 'string' && characters(value) <= limits.workSummaryCharactersMax && isWellFormed(value);
const flag = (value: unknown): value is boolean => typeof value === 'boolean';
const whole = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
const generation = (value: unknown): value is number => whole(value) && value >= 1;
const cards = (value: unknown): value is number =>
  whole(value) && value >= 1 && value <= limits.discoverCountMax;
const lease = (value: unknown): value is number => whole(value) && value >= 1 && value <= limits.leaseMsMax;
const failureCode = (value: unknown): value is string =>
  typeof value === 'string' && /^[a-z0-9_]{1,64}$/.test(value);
const json = (value: unknown): value is Json => value !== undefined;
const oneOf =
  <T extends string>(list: readonly T[]): Check<T> =>
  (value): value is T =>
    list.includes(value as T);

const connectionFields = { connection_id: text, generation: whole };
const content = oneOf(['notice', 'full']);

/** Fields of each request beyond the common ones. */
const requests = {
  register: {
    auth_token: text,
    project: text,
    principal_id: text,
    session_id: text,
    adapter_kind: oneOf(adapterKinds),
    bell: oneOf(bells),
    host_kind: oneOf(hostKinds),
    work_summary: summary,
    lease_ms: lease,
    if_free: flag,
    postbell_version: text,
  },
  heartbeat: { project: text, session_id: text, ...connectionFields, work_summary: summary },
  disconnect: { project: text, session_id: text, ...connectionFields },
  discover: { auth_token: text, project: text, limit: cards, detail: flag },
  notify: { auth_token: text, project: text, delivery_id: text, expected_generation: generation, wait: flag },
  host_accept: { attempt_id: text, delivery_id: text, ...connectionFields, content, receipt: json },
  host_reject: { attempt_id: text, delivery_id: text, ...connectionFields, failure_code: failureCode },
  status: { auth_token: text },
  stop: { auth_token: text },
} as const satisfies Record<string, Record<string, Check<unknown>>>;

const optionalNames = [
  'work_summary',
  'lease_ms',
  'if_free',
  'limit',
  'detail',
  'expected_generation',
  'wait',
] as const;
type OptionalName = (typeof optionalNames)[number];
const optional: ReadonlySet<string> = new Set(optionalNames);

type Requests = typeof requests;
type Checked<C> = C extends Check<infer T> ? T : never;
export type RequestType = keyof Requests;

/** The checked fields of one request type. */
export type RequestFields<K extends RequestType> = {
  readonly [F in Exclude<keyof Requests[K], OptionalName>]: Checked<Requests[K][F]>;
} & { readonly [F in Extract<keyof Requests[K], OptionalName>]?: Checked<Requests[K][F]> };

/** A request whose fields were checked against the closed list of its type. */
export type RequestFrame = {
  [K in RequestType]: { type: K; request_id: string; fields: RequestFields<K> };
}[RequestType];

/** The request in one line, or the code it is refused with. The request id is kept where it could be read. */
export function readRequest(line: string): { request_id: string; frame: Result<RequestFrame> } {
  const parsed = parseObject(line);
  if (parsed === undefined)
    return { request_id: '', frame: new Refusal('invalid_json', 'not a JSON object') };
  const request_id = typeof parsed.request_id === 'string' ? parsed.request_id : '';
  return { request_id, frame: checkRequest(parsed, request_id) };
}

function checkRequest(parsed: Record<string, unknown>, request_id: string): Result<RequestFrame> {
  const { v, type, request_id: _, hops, ...fields } = parsed;
  if (v !== wireVersion)
    return new Refusal('unsupported_version', `this router speaks version ${wireVersion}`);
  if (typeof type !== 'string' || !Object.hasOwn(requests, type))
    return new Refusal('unsupported_type', 'unknown frame type');
  if (request_id === '' || !whole(hops))
    return new Refusal('invalid_frame', 'request_id and hops are required');
  if ((hops as number) > limits.frameHopsMax)
    return new Refusal('hop_limit', `at most ${limits.frameHopsMax} hops`);
  const checks: Record<string, Check<unknown>> = requests[type as RequestType];
  for (const name of Object.keys(fields))
    if (!Object.hasOwn(checks, name))
      return new Refusal('unexpected_field', `unexpected field ${JSON.stringify(name)}`);
  for (const [name, check] of Object.entries(checks)) {
    const value = fields[name];
    if (value === undefined && optional.has(name)) continue;
    if (!check(value))
      return new Refusal('invalid_field', `${name} is missing or malformed`, { field: name });
  }
  return { type, request_id, fields } as unknown as RequestFrame;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export type Answer =
  | { ok: true; [field: string]: unknown }
  | { ok: false; error: { code: ErrorCode; message: string } };

/** What a client reads from a router: an answer to one of its requests, or a frame of the router's own. */
export type Incoming =
  | { kind: 'answer'; request_id: string; answer: Answer }
  | { kind: 'frame'; type: 'deliver' | 'session_superseded'; fields: Readonly<Record<string, Json>> }
  /** In the shape of another wire version. */
  | { kind: 'foreign' }
  | { kind: 'invalid' };

export function readIncoming(line: string): Incoming {
  const parsed = parseObject(line);
  if (parsed === undefined) return { kind: 'invalid' };
  const { v, hops: __, type, request_id, ...rest } = parsed;
  if (v !== undefined && v !== wireVersion) return { kind: 'foreign' };
  if (type === 'deliver' || type === 'session_superseded')
    return { kind: 'frame', type, fields: rest as Record<string, Json> };
  if (parsed.ok === true && typeof request_id === 'string')
    return { kind: 'answer', request_id, answer: rest as Answer };
  const { error } = parsed;
  if (parsed.ok !== false || !isObject(error) || !isErrorCode(error.code)) return { kind: 'invalid' };
  const message = typeof error.message === 'string' ? error.message : '';
  const answer: Answer = { ok: false, error: { code: error.code, message } };
  return { kind: 'answer', request_id: typeof request_id === 'string' ? request_id : '', answer };
}

/** What a session's process needs of a `deliver` frame. */
export interface DeliverFrame {
  attempt_id: string;
  delivery_id: string;
  connection_id: string;
  generation: number;
  content: 'notice' | 'full';
  /** Of the reservation that a notice stands on; a whole message has none. */
  notification_id?: string;
  envelope: Json;
}

/** undefined where the frame lacks any of it, or its envelope is not of its content. */
export function readDeliver(fields: Readonly<Record<string, Json>>): DeliverFrame | undefined {
  const { attempt_id, delivery_id, connection_id, generation, envelope } = fields;
  const fits =
    text(attempt_id) && text(delivery_id) && text(connection_id) && whole(generation) && isObject(envelope);
  if (!fits) return undefined;
  const of = { attempt_id, delivery_id, connection_id, generation, envelope };
  if (fields.content === 'full')
    return envelope.type === 'postbell_message' ? { ...of, content: 'full' } : undefined;
  const { notification_id } = envelope;
  return fields.content === 'notice' && text(notification_id)
    ? { ...of, content: 'notice', notification_id }
    : undefined;
}

/** One frame as a line. */
export function writeFrame(frame: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ v: wireVersion, hops: 0, ...frame })}\n`;
}
