// Reads a TOML document as far as Codex's own settings need it (TOML 1.0: keys, tables, strings, arrays, booleans; numbers and
// dates stay text). It never writes one.

export type Toml = string | boolean | Toml[] | TomlTable;
export interface TomlTable {
  [key: string]: Toml;
}

const depthMax = 64;

class Malformed extends Error {}

const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  t: '\t',
  n: '\n',
  f: '\f',
  r: '\r',
  e: '\u001b',
  '"': '"',
  '\\': '\\',
};

/** Without a prototype: its keys are whatever a person wrote. */
const newTable = (): TomlTable => Object.create(null) as TomlTable;
export const isTable = (value: Toml | undefined): value is TomlTable =>
  typeof value === 'object' && !Array.isArray(value);

/** The document; undefined where it is none. */
export function readToml(text: string): TomlTable | undefined {
  try {
    return new Reader(text.replace(/^\ufeff/, '')).document();
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

class Reader {
  private at = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  document(): TomlTable {
    const root = newTable();
    let table = root;
    for (this.skip(true); this.at < this.text.length; this.skip(true)) {
      if (this.takes('[[')) {
        table = newTable();
        this.listAt(root, this.key()).push(table);
        this.expect(']]');
      } else if (this.takes('[')) {
        table = descend(root, this.key());
        this.expect(']');
      } else this.pair(table);
      this.skip(false);
      if (this.at < this.text.length && !/[\r\n]/.test(this.peek())) throw new Malformed();
    }
    return root;
  }

  private pair(table: TomlTable, depth = 0): void {
    const path = this.key();
    this.expect('=');
    this.skip(false);
    const name = path.pop() as string;
    descend(table, path)[name] = this.value(depth);
  }

  private listAt(root: TomlTable, path: string[]): Toml[] {
    const name = path.pop() as string;
    const table = descend(root, path);
    table[name] ??= [];
    if (!Array.isArray(table[name])) throw new Malformed();
    return table[name];
  }

  /** Dotted, each part bare or quoted. */
  private key(): string[] {
    const path: string[] = [];
    do {
      this.skip(false);
      const quote = this.peek();
      if (quote === '"' || quote === "'") path.push(this.string());
      else path.push(this.match(/[\w-]+/y));
      this.skip(false);
    } while (this.takes('.'));
    return path;
  }

  private value(depth: number): Toml {
    if (depth > depthMax) throw new Malformed();
    const first = this.peek();
    if (first === '"' || first === "'") return this.string();
    if (first === '[') return this.list(depth);
    if (first === '{') return this.inline(depth);
    const bare = this.match(/\d{4}-\d\d-\d\d \d[\w.:+-]*|[\w.:+-]+/y);
    return bare === 'true' || bare === 'false' ? bare === 'true' : bare;
  }

  private list(depth: number): Toml[] {
    const values: Toml[] = [];
    this.expect('[');
    for (this.skip(true); !this.takes(']'); this.skip(true)) {
      values.push(this.value(depth + 1));
      this.skip(true);
      if (!this.takes(',') && this.peek() !== ']') throw new Malformed();
    }
    return values;
  }

  private inline(depth: number): TomlTable {
    const table = newTable();
    this.expect('{');
    for (this.skip(true); !this.takes('}'); this.skip(true)) {
      this.pair(table, depth + 1);
      this.skip(true);
      if (!this.takes(',') && this.peek() !== '}') throw new Malformed();
    }
    return table;
  }

  private string(): string {
    const quote = this.peek();
    if (!this.takes(quote.repeat(3))) {
      this.at += 1;
      const line = this.until(quote);
      if (/[\r\n]/.test(line)) throw new Malformed();
      return quote === '"' ? unescaped(line) : line;
    }
    this.takes('\r');
    this.takes('\n');
    const body = this.until(quote.repeat(3));
    // Up to two quotes may stand right before the end.
    let more = '';
    while (more.length < 2 && this.takes(quote)) more += quote;
    return quote === '"' ? unescaped(`${body}${more}`) : `${body}${more}`;
  }

  /** What stands before `end`, which is taken, too; in double quotes an escaped one does not end it. */
  private until(end: string): string {
    const from = this.at;
    for (; this.at < this.text.length; this.at += 1) {
      if (this.text.startsWith(end, this.at)) {
        this.at += end.length;
        return this.text.slice(from, this.at - end.length);
      }
      if (end.startsWith('"') && this.peek() === '\\') this.at += 1;
    }
    throw new Malformed();
  }

  /** Blanks, and with `lines` also line ends and comments; a comment at the end of a line in any case. */
  private skip(lines: boolean): void {
    const blank = lines ? /(?:\s|#[^\n]*)*/y : /[ \t]*(?:#[^\n]*)?/y;
    blank.lastIndex = this.at;
    this.at += blank.exec(this.text)?.[0].length ?? 0;
  }

  private match(what: RegExp): string {
    what.lastIndex = this.at;
    const [found] = what.exec(this.text) ?? [];
    if (found === undefined) throw new Malformed();
    this.at += found.length;
    return found;
  }

  private peek(): string {
    return this.text.charAt(this.at);
  }

  private takes(what: string): boolean {
    if (!this.text.startsWith(what, this.at)) return false;
    this.at += what.length;
    return true;
  }

  private expect(what: string): void {
    if (!this.takes(what)) throw new Malformed();
  }
}

/** The table at that path, made where there is none; of an array of tables the last. */
function descend(from: TomlTable, path: readonly string[]): TomlTable {
  let table = from;
  for (const name of path) {
    table[name] ??= newTable();
    const next = table[name];
    const inner = Array.isArray(next) ? next.at(-1) : next;
    if (!isTable(inner)) throw new Malformed();
    table = inner;
  }
  return table;
}

/** From left to right: a backslash that is escaped escapes nothing, and goes on with no other line. */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:([ \t]*\r?\n[ \t\r\n]*)|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([\s\S]))/g,
    (_, gap?: string, two?: string, four?: string, eight?: string, letter?: string) => {
      if (gap !== undefined) return '';
      if (letter !== undefined) {
        const said = escapes[letter];
        if (said === undefined) throw new Malformed();
        return said;
      }
      const point = Number.parseInt((two ?? four ?? eight) as string, 16);
      if (point > 0x10ffff) throw new Malformed();
      return String.fromCodePoint(point);
    },
  );
}
