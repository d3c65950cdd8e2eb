// What happened, step by step: the last lines to be shown, and one number over all of them, by which two runs are
// compared.

const keptLines = 40;

export class Trace {
  #hash = 0x811c9dc5;
  readonly #ring: string[] = Array.from({ length: keptLines }, () => '');
  #count = 0;

  add(line: string): void {
    let hash = this.#hash;
    for (let at = 0; at < line.length; at += 1) hash = Math.imul(hash ^ line.charCodeAt(at), 0x01000193);
    this.#hash = hash;
    this.#ring[this.#count % keptLines] = line;
    this.#count += 1;
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  last(): string[] {
    const from = Math.max(0, this.#count - keptLines);
    return Array.from(
      { length: this.#count - from },
      (_, at) => this.#ring[(from + at) % keptLines] as string,
    );
  }
}
