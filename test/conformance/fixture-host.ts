// A host that a scene scripts: it takes what it is given, refuses, says nothing, or answers late. What it was given it
// keeps, and hands to its model in a turn of its own, or when the running turn ends.

export type Script = 'accept' | 'refuse' | 'refuse for good' | 'silent' | 'no such method' | 'dead';

export type Said = { ok: true } | { ok: false; code: 'busy' | 'unknown_method' | 'closed' | 'invalid' };

export interface Given {
  at: number;
  text: string;
}

export class FixtureHost {
  script: Script = 'accept';
  /** Every call, taken or not: all that this host ever saw. */
  readonly given: Given[] = [];
  /** What it took and no model has seen. */
  readonly queue: string[] = [];
  /** What its model saw, in order. */
  readonly seen: string[] = [];
  inTurn = false;
  /** A model that takes no notice. */
  ignores = false;
  readonly #now: () => number;
  readonly #onText: (text: string) => void;
  #late: (() => void)[] = [];

  constructor(now: () => number, onText: (text: string) => void) {
    this.#now = now;
    this.#onText = onText;
  }

  /** What an adapter calls. */
  async call(text: string): Promise<Said> {
    this.given.push({ at: this.#now(), text });
    switch (this.script) {
      case 'refuse':
        return { ok: false, code: 'busy' };
      case 'refuse for good':
        return { ok: false, code: 'invalid' };
      case 'no such method':
        return { ok: false, code: 'unknown_method' };
      case 'dead':
        return { ok: false, code: 'closed' };
      case 'silent':
        await new Promise<void>((resolve) => this.#late.push(resolve));
    }
    this.take(text);
    return { ok: true };
  }

  /** Answers what it left unanswered. */
  answerLate(): void {
    for (const resolve of this.#late.splice(0)) resolve();
  }

  take(text: string): void {
    this.queue.push(text);
    if (!this.inTurn) this.#drain();
  }

  startTurn(): void {
    this.inTurn = true;
  }

  endTurn(): void {
    this.inTurn = false;
    this.#drain();
  }

  #drain(): void {
    if (this.ignores || this.script === 'dead') return;
    for (const text of this.queue.splice(0)) {
      this.seen.push(text);
      this.#onText(text);
    }
  }
}
