/** How often what happened. */
export class Tally {
  readonly #counts = new Map<string, number>();

  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  lines(): string[] {
    const names = [...this.#counts.keys()].sort();
    return names.map((name) => `${String(this.#counts.get(name)).padStart(8)}  ${name}`);
  }

  add(other: Tally): void {
    for (const [name, count] of other.#counts) this.count(name, count);
  }
}
