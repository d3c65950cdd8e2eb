// The one session that an agent holds for us: how it begins, its turns, one at a time, and the permissions that it asks for.
// What the agent says is shown, and never read as mail or as a receipt: it answers by the tools of our server.

import { asText, beginningOf, isObject, quoted } from '../../protocol/json.ts';
import { version } from '../../protocol/version.ts';
import type { AgentName } from './known.ts';
import { AgentRefused, type Link, type LinkHandlers } from './link.ts';
import { isOwnCall, outcomeOf, type Permit, serverName, titleOf } from './permission.ts';

/** The one version that is spoken. */
export const protocolVersion = 1;

/** A server that the agent starts for this session. */
export interface InjectedServer {
  command: string;
  words: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** How a prompt came to its end. `reason` is the agent's word for it; without one nothing is known of it. */
export type Stop =
  | { stop: 'ended'; reason: string }
  | { stop: 'refused'; code: number; message: string }
  | { stop: 'lost' }
  | { stop: 'unreadable' };

export interface Turn {
  /** At the agent's first word on this prompt; never, where it says none. */
  taken: Promise<'taken'>;
  stopped: Promise<Stop>;
}

export interface SessionOptions {
  /** A line for the person who runs this. */
  note(line: string): void;
  /** What the agent says, and which tools it calls, for a person who looks on. */
  show?(text: string): void;
  /** The answer to a call that the agent may not make by itself. Of no use to it once `withdrawn`. */
  permit(title: string, own: boolean, withdrawn: AbortSignal): Promise<Permit> | Permit;
}

/** Updates on a prompt. All others may come at any time, and say nothing of it. */
const onPrompt: ReadonlySet<string> = new Set([
  'user_message_chunk',
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
]);
const beside: ReadonlySet<string> = new Set([
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
  'usage_update',
]);
/** Kinds that were noted as unknown; of the rest nothing is said. */
const unknownNotedMax = 16;

export class AcpSession implements LinkHandlers {
  readonly #options: SessionOptions;
  #link: Link | undefined;
  #id: string | undefined;
  #onTaken: (() => void) | undefined;
  /** The end of the newest turn. */
  #stopped: Promise<Stop> | undefined;
  #gone = false;
  #ending = false;
  /** What a person has typed, and waits for the end of a turn. */
  readonly #typed: string[] = [];
  /** What the agent said of each call since this turn began. */
  readonly #calls = new Map<string, Record<string, unknown>>();
  /** Those of its messages that have an id. */
  readonly #messages = new Set<string>();
  /** Both of the turn before, of which the agent may still say something. */
  #former: { calls: ReadonlySet<string>; messages: ReadonlySet<string> } = {
    calls: new Set(),
    messages: new Set(),
  };
  readonly #unknown = new Set<string>();
  /** Questions without an answer yet. */
  readonly #open = new Set<AbortController>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Asks for a session with our server in it, and for the mode where the agent has one of that name.
   * @returns what the agent calls itself
   */
  async start(link: Link, directory: string, server: InjectedServer, mode?: string): Promise<AgentName> {
    this.#link = link;
    const initialized = fields(
      await link.request('initialize', {
        protocolVersion,
        clientInfo: { name: 'postbell', title: 'Postbell', version },
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      }),
    );
    if (typeof initialized.protocolVersion !== 'number')
      throw new AgentRefused(0, 'it names no version of the protocol');
    if (initialized.protocolVersion !== protocolVersion)
      throw new AgentRefused(0, `it speaks another version of the protocol than ${protocolVersion}`);
    const { command, words: args, environment } = server;
    const env = Object.entries(environment).map(([name, value]) => ({ name, value }));
    const made = fields(
      await link.request('session/new', {
        cwd: directory,
        mcpServers: [{ name: serverName, command, args, env }],
      }),
    );
    if (typeof made.sessionId !== 'string') throw new AgentRefused(0, 'it names no session');
    this.#id = made.sessionId;
    if (mode !== undefined) await this.#setMode(link, made.modes, mode);
    const { name, version: of } = fields(initialized.agentInfo);
    return { name: nameIn(name, 'an agent without a name'), version: nameIn(of, 'of no version') };
  }

  async #setMode(link: Link, modes: unknown, mode: string): Promise<void> {
    const { availableModes } = fields(modes);
    const offered = Array.isArray(availableModes) ? availableModes.map((one) => fields(one).id) : [];
    if (!offered.includes(mode)) {
      this.#options.note(`the agent offers no mode ${quoted(mode)}; it stays in its own`);
      return;
    }
    await link.request('session/set_mode', { sessionId: this.#id, modeId: mode });
  }

  isBusy(): boolean {
    return this.#onTaken !== undefined || this.#typed.length > 0;
  }

  isGone(): boolean {
    return this.#gone || this.#ending;
  }

  /** Nothing comes from the agent any more. */
  gone(): void {
    this.#gone = true;
  }

  /** What a person typed: at once, or when the turn ends, before anything else. */
  type(text: string): void {
    this.#typed.push(text);
    this.#next();
  }

  #next(): void {
    if (this.#onTaken !== undefined || this.isGone()) return;
    const text = this.#typed.shift();
    if (text === undefined) return;
    void this.#prompt(text).stopped.then((stop) => {
      if (stop.stop === 'refused') this.#options.note(`the agent refused the prompt: ${stop.message}`);
    });
  }

  /** A turn with a notice, of which a person who looks on is told. */
  notify(text: string): Turn {
    this.#options.show?.('\n[Postbell notice]\n');
    return this.#prompt(text);
  }

  /** Begins a turn. Only while none runs. */
  #prompt(text: string): Turn {
    const link = this.#link;
    if (link === undefined || this.#onTaken !== undefined) throw new Error('a turn runs, or no session');
    this.#former = { calls: new Set(this.#calls.keys()), messages: new Set(this.#messages) };
    this.#calls.clear();
    this.#messages.clear();
    const taken = new Promise<'taken'>((resolve) => {
      this.#onTaken = () => resolve('taken');
    });
    const prompt = [{ type: 'text', text }];
    const stopped = link.request('session/prompt', { sessionId: this.#id, prompt }).then(
      (answer): Stop => {
        const { stopReason } = fields(answer);
        return typeof stopReason === 'string' && stopReason !== ''
          ? { stop: 'ended', reason: stopReason }
          : { stop: 'unreadable' };
      },
      (error: unknown): Stop =>
        error instanceof AgentRefused
          ? { stop: 'refused', code: error.code, message: error.message }
          : { stop: 'lost' },
    );
    const ended = stopped.finally(() => this.#turnEnds());
    this.#stopped = ended;
    return { taken, stopped: ended };
  }

  #turnEnds(): void {
    this.#onTaken = undefined;
    for (const question of this.#open) question.abort();
    this.#options.show?.('\n');
    this.#next();
  }

  /** Rings and asks no more; stops the turn that runs, and resolves when the agent has. */
  async cancel(): Promise<void> {
    this.#ending = true;
    if (this.#onTaken === undefined || this.#gone) return;
    await this.#link?.notify('session/cancel', { sessionId: this.#id }).catch(() => {});
    await this.#stopped;
  }

  onUpdate(params: unknown): void {
    const { sessionId, update } = fields(params);
    if (sessionId !== this.#id || !isObject(update)) return;
    const kind = asText(update.sessionUpdate);
    if (!onPrompt.has(kind)) {
      if (!beside.has(kind)) this.#noteUnknown(kind);
      return;
    }
    if (kind === 'tool_call_update' && this.#former.calls.has(asText(update.toolCallId))) return;
    const { messageId } = update;
    const isLate = typeof messageId === 'string' && this.#former.messages.has(messageId);
    if (!isLate) this.#onTaken?.();
    if (typeof messageId === 'string' && !isLate) this.#messages.add(messageId);
    if (kind === 'agent_message_chunk') {
      const { text } = fields(update.content);
      if (typeof text === 'string') this.#options.show?.(text);
    }
    if (kind === 'tool_call' || kind === 'tool_call_update') this.#told(update);
    if (kind === 'tool_call') this.#options.show?.(`\n[${titleOf(update)}]\n`);
  }

  #noteUnknown(kind: string): void {
    if (this.#unknown.has(kind) || this.#unknown.size >= unknownNotedMax) return;
    this.#unknown.add(kind);
    this.#options.note(`the agent sent an update of an unknown kind, ${quoted(kind.slice(0, 64))}`);
  }

  /** A later word on a call adds to the earlier ones. */
  #told(update: Record<string, unknown>): Record<string, unknown> {
    const id = asText(update.toolCallId);
    const given = Object.entries(update).filter(([, value]) => value !== undefined && value !== null);
    const call = { ...this.#calls.get(id), ...Object.fromEntries(given) };
    this.#calls.set(id, call);
    return call;
  }

  async onPermission(params: unknown, withdrawn: AbortSignal): Promise<object> {
    const { sessionId, toolCall } = fields(params);
    if (this.isGone() || sessionId !== this.#id) return outcomeOf(params, 'cancel');
    const call = this.#told(fields(toolCall));
    const question = new AbortController();
    this.#open.add(question);
    withdrawn.addEventListener('abort', () => question.abort());
    const permit = await this.#options.permit(titleOf(call), isOwnCall(call), question.signal);
    this.#open.delete(question);
    return outcomeOf(params, this.isGone() || question.signal.aborted ? 'cancel' : permit);
  }
}

const nameCharactersMax = 100;
const nameIn = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? beginningOf(value, nameCharactersMax) : otherwise;

const fields = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
