// Keeps one session registered: connects, registers, renews the lease, takes hand-offs, and begins again under a new
// generation whenever the router goes away. What is asked of the host is handed in.

import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { type ErrorCode, Fault } from '../protocol/errors.ts';
import type { Json } from '../protocol/json.ts';
import { limits } from '../protocol/limits.ts';
import type { Registration } from '../protocol/session.ts';
import { version } from '../protocol/version.ts';
import type { RouterAddress } from './calls.ts';
import { connectRouter, type RouterClient, type RouterFrame } from './client.ts';

const registerWaitMs = 5_000;
const retryMsFirst = 100;
const retryMsMax = 5_000;
/** A process that was replaced or outranked asks again as often, and never replaces its equal. */
const askAgainMs = 30_000;

export interface Attachment {
  /** Unregisters; resolves once the router was told, or could not be. */
  close(): Promise<void>;
}

export interface AttachmentOptions {
  address: RouterAddress;
  /** Read at each registration. */
  registration(): Registration;
  clock: Clock;
  random: Random;
  /** Starts the installed router where none answers; may be called again. */
  startRouter(): void;
  /** Rings for a hand-off; undefined means no answer may be given. */
  take(
    handOff: Readonly<Record<string, Json>>,
  ): Promise<{ content: 'notice' | 'full'; receipt: Json } | { failure_code: ErrorCode } | undefined>;
  onRegistered?(generation: number): void;
  onFault?(fault: Fault): void;
}

export function attach(options: AttachmentOptions): Attachment {
  const { clock } = options;
  let closed = false;
  let client: RouterClient | undefined;
  let key: { connection_id: string; generation: number } | undefined;
  let cancelTimer = (): void => {};
  let failures = 0;
  let ifFree = false;

  const again = (ms: number): void => {
    cancelTimer();
    if (!closed) cancelTimer = clock.after(ms, () => void connectOnce());
  };

  const backOff = (): void => {
    failures += 1;
    const base = Math.min(retryMsFirst * 2 ** (failures - 1), retryMsMax);
    const jitter = 1 + (((options.random.bytes(1)[0] as number) / 255) * 2 - 1) * 0.2;
    again(base * jitter);
  };

  const connectOnce = async (): Promise<void> => {
    try {
      client = await connectRouter(options.address.socketPath, options, { onFrame, onClose });
      const { if_free: _, ...registration } = options.registration();
      const answer = await client.request(
        {
          type: 'register',
          auth_token: options.address.token(),
          ...registration,
          ...(ifFree && { if_free: true }),
          postbell_version: version,
        },
        registerWaitMs,
      );
      failures = 0;
      ifFree = false;
      key = { connection_id: String(answer.connection_id), generation: Number(answer.generation) };
      options.onRegistered?.(key.generation);
      renewAfter(Number(answer.lease_ms) / 2);
    } catch (error) {
      failed(error);
    }
  };

  const failed = (error: unknown): void => {
    const fault = error instanceof Fault ? error : new Fault('internal_error', 'registration failed', { cause: error });
    const { code } = fault;
    key = undefined;
    client?.close();
    client = undefined;
    if (closed) return;
    if (code === 'bell_outranked') return yieldSession();
    if (code === 'router_unreachable') options.startRouter();
    options.onFault?.(fault);
    backOff();
  };

  const yieldSession = (): void => {
    ifFree = true;
    again(askAgainMs);
  };

  const renewAfter = (ms: number): void => {
    cancelTimer = clock.after(ms, () => {
      const { project, session_id } = options.registration();
      client?.request({ type: 'heartbeat', project, session_id, ...key }, limits.routerCallWaitMs).then(
        (answer) => renewAfter(Number(answer.lease_ms) / 2),
        (error: unknown) => failed(error),
      );
    });
  };

  function onClose(): void {
    if (key === undefined) return;
    key = undefined;
    client = undefined;
    backOff();
  }

  function onFrame(frame: RouterFrame): void {
    if (frame.type === 'session_superseded') {
      key = undefined;
      client?.close();
      return yieldSession();
    }
    void takeHandOff(frame.fields);
  }

  async function takeHandOff(fields: RouterFrame['fields']): Promise<void> {
    const on = client;
    const outcome = await options.take(fields).catch(() => ({ failure_code: 'adapter_error' as const }));
    if (outcome === undefined) return;
    const { attempt_id, delivery_id, connection_id, generation } = fields;
    const type = 'failure_code' in outcome ? 'host_reject' : 'host_accept';
    on?.tell({ type, request_id: String(attempt_id), attempt_id, delivery_id, connection_id, generation, ...outcome });
  }

  void connectOnce();
  return {
    close: async () => {
      closed = true;
      cancelTimer();
      if (client !== undefined && key !== undefined) {
        const { project, session_id } = options.registration();
        const gone = { type: 'disconnect', project, session_id, ...key };
        key = undefined;
        await client.request(gone, 80).catch(() => {});
      }
      client?.close();
    },
  };
}
