// A small scanner of TypeScript and JavaScript: enough to find imports, names and function bodies without being
// fooled by comments, strings, templates and regular expressions. It guesses where the grammar needs a parser
// (`/` after a closing bracket divides); a wrong guess costs one line, since no regular expression spans two.

export interface Token {
  kind: 'word' | 'punct' | 'string' | 'template' | 'regex';
  /** What is between the quotes for a string; one stretch between substitutions for a template. */
  text: string;
  line: number;
}

export interface Import {
  /** Absent when the name is computed. */
  specifier?: string;
  kind: 'static' | 'types' | 'lazy';
  line: number;
}

export interface FunctionSpan {
  line: number;
  lines: number;
}

const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))+/y;
const WORD = /[\p{L}\p{N}_$#]+/uy;
const STRING = /'(?:\\[\s\S]|[^'\\\n])*'?|"(?:\\[\s\S]|[^"\\\n])*"?/y;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/[\\\n])+\/[a-z]*/y;
const STRETCH = /(?:\\[\s\S]|\$(?!\{)|[^\\$`])*/y;
const PUNCT = /=>|\?\.(?!\d)|[\s\S]/y;
const BEFORE_REGEX = /^(return|typeof|case|in|of|do|else|void|await|yield|delete|instanceof|new|throw)$/;

class Scanner {
  readonly tokens: Token[] = [];
  private readonly text: string;
  private at = 0;
  private line = 1;
  /** Depth of braces inside each open `${`. */
  private readonly substitutions: number[] = [];

  constructor(text: string) {
    this.text = text;
  }

  run(): Token[] {
    this.take(/#![^\n]*/y);
    for (this.take(BLANK); this.at < this.text.length; this.take(BLANK)) this.next();
    return this.tokens;
  }

  private next(): void {
    const c = this.text[this.at];
    if (c === "'" || c === '"') this.push('string', STRING);
    else if (c === '`') this.template();
    else if (c === '}' && this.substitutions.at(-1) === 0) this.endSubstitution();
    else if (c === '/' && this.regexMayStand() && this.push('regex', REGEX)) return;
    else if (!this.push('word', WORD)) this.punct();
  }

  private punct(): void {
    const depth = this.substitutions.length - 1;
    const c = this.text[this.at];
    if (depth >= 0 && c === '{') this.substitutions[depth]! += 1;
    if (depth >= 0 && c === '}') this.substitutions[depth]! -= 1;
    this.push('punct', PUNCT);
  }

  private endSubstitution(): void {
    this.substitutions.pop();
    this.template();
  }

  /** From a backtick, or the brace that closes a substitution, to the next `${` or the end of the template. */
  private template(): void {
    this.at += 1;
    this.push('template', STRETCH);
    const opens = this.text.startsWith('${', this.at);
    if (opens) this.substitutions.push(0);
    this.at += opens ? 2 : 1;
  }

  private regexMayStand(): boolean {
    const before = this.tokens.at(-1);
    if (!before) return true;
    if (before.kind === 'word') return BEFORE_REGEX.test(before.text);
    if (before.kind !== 'punct') return false;
    if (before.text === '!') return !endsValue(this.tokens.at(-2));
    return !/[)\]}]/.test(before.text);
  }

  private push(kind: Token['kind'], pattern: RegExp): boolean {
    const line = this.line;
    const text = this.take(pattern);
    if (text === undefined) return false;
    this.tokens.push({
      kind,
      line,
      text: kind === 'string' ? text.slice(1, -1) : text.replace(/^\?\.$/, '.'),
    });
    return true;
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) return undefined;
    this.at += found.length;
    this.line += countLines(found);
    return found;
  }
}

function endsValue(token: Token | undefined): boolean {
  if (token?.kind === 'word') return !BEFORE_REGEX.test(token.text);
  return token?.kind === 'punct' && /^[)\]]$/.test(token.text);
}

/** How many line ends a text holds. */
export function countLines(text: string): number {
  return text.split('\n').length - 1;
}

/** Tokens of a source; `?.` is given as `.`, comments are dropped. */
export function tokenize(text: string): Token[] {
  return new Scanner(text).run();
}

/** Whether the token at `i` is this word or sign, and not a string of that text. */
export function is(tokens: readonly Token[], i: number, text: string): boolean {
  const token = tokens[i];
  return token?.text === text && (token.kind === 'word' || token.kind === 'punct');
}

/** The name of the member that is read off the token at `i`: `a.b`, `a?.b` or `a['b']`. */
export function memberOf(tokens: readonly Token[], i: number): string | undefined {
  const access = is(tokens, i + 1, '.') && is(tokens, i + 2, '[') ? i + 2 : i + 1;
  const name = tokens[access + 1];
  if (is(tokens, access, '.')) return name?.kind === 'word' ? name.text : undefined;
  const literal = name?.kind === 'string' || name?.kind === 'template';
  return is(tokens, access, '[') && literal ? name.text : undefined;
}

/** Every module that a source names: `import`, `export … from`, `import()`, `require()`, types included. */
export function importsOf(tokens: readonly Token[]): Import[] {
  return tokens.flatMap((token, i) => {
    if (token.kind !== 'word' || is(tokens, i - 1, '.')) return [];
    if (token.text === 'import' && is(tokens, i + 1, '(')) return [lazyImport(tokens, i)];
    if (token.text === 'require' && is(tokens, i + 1, '(')) return [lazyImport(tokens, i)];
    if (token.text === 'import' || token.text === 'export') return clause(tokens, i);
    return [];
  });
}

function lazyImport(tokens: readonly Token[], i: number): Import {
  const name = tokens[i + 2];
  const literal = name?.kind === 'string' || name?.kind === 'template';
  const whole = is(tokens, i + 3, ')') || is(tokens, i + 3, ',');
  const found: Import = { kind: 'lazy', line: tokens[i]!.line };
  return literal && whole ? { ...found, specifier: name.text } : found;
}

function clause(tokens: readonly Token[], i: number): Import[] {
  const { line, text } = tokens[i]!;
  const first = tokens[i + 1];
  if (text === 'import' && first?.kind === 'string') return [{ specifier: first.text, kind: 'static', line }];
  const start = is(tokens, i + 1, 'type') ? i + 2 : i + 1;
  if (text === 'export' && !is(tokens, start, '{') && !is(tokens, start, '*')) return [];
  for (let j = i + 1; j < tokens.length && inClause(tokens[j]!); j += 1) {
    const name = tokens[j + 1];
    if (is(tokens, j, 'from') && name?.kind === 'string') {
      return [{ specifier: name.text, kind: clauseKind(tokens.slice(i + 1, j)), line }];
    }
  }
  return [];
}

function inClause(token: Token): boolean {
  return token.kind === 'word' || token.kind === 'string' || /^[{},*]$/.test(token.text);
}

function clauseKind(names: readonly Token[]): Import['kind'] {
  const text = names.map((token) => token.text).join(' ');
  const types = /^type [^,]/.test(text) || /^\{( type [^,}]+,?)+ ?\}$/.test(text);
  return types ? 'types' : 'static';
}

const CONTROL = /^(if|for|while|switch|catch|with|await)$/;
const BEFORE_TYPE = /^([:<|&,([?=]|=>|is|extends|keyof|readonly|asserts)$/;

/** Functions and methods with a body in braces, nested ones too, with all their lines. */
export function functionsOf(tokens: readonly Token[]): FunctionSpan[] {
  const pairs = pairBrackets(tokens);
  return tokens.flatMap((token, i) => {
    const body = token.kind === 'punct' ? bodyAfter(tokens, i, pairs) : undefined;
    const end = body === undefined ? undefined : pairs.get(body);
    if (end === undefined) return [];
    const line = tokens[token.text === ')' ? pairs.get(i)! : i]!.line;
    return [{ line, lines: tokens[end]!.line - line + 1 }];
  });
}

/** Where the body opens if the token at `i` is an arrow or ends the parameters of a function. */
function bodyAfter(tokens: readonly Token[], i: number, pairs: Map<number, number>): number | undefined {
  if (is(tokens, i, '=>')) return is(tokens, i + 1, '{') ? i + 1 : undefined;
  const open = is(tokens, i, ')') ? pairs.get(i) : undefined;
  if (open === undefined) return undefined;
  const head = tokens[open - 1];
  if (head?.kind === 'word' && CONTROL.test(head.text)) return undefined;
  if (is(tokens, open - 2, 'extends')) return undefined;
  if (is(tokens, i + 1, '{')) return i + 1;
  return is(tokens, i + 1, ':') ? bodyAfterType(tokens, i + 1, pairs) : undefined;
}

/** Reads over a return type: a brace that follows a type operator opens a type, any other one the body. */
function bodyAfterType(
  tokens: readonly Token[],
  colon: number,
  pairs: Map<number, number>,
): number | undefined {
  let angles = 0;
  for (let j = colon + 1; j < tokens.length; j += 1) {
    const { kind, text } = tokens[j]!;
    if (kind !== 'punct') continue;
    if (text === '{' && !BEFORE_TYPE.test(tokens[j - 1]!.text)) return j;
    if (text === ';' || /^[)\]}]$/.test(text) || (text === ',' && angles <= 0)) return undefined;
    if (/^[([{]$/.test(text)) j = pairs.get(j) ?? j;
    angles += Number(text === '<') - Number(text === '>');
  }
  return undefined;
}

/** Each bracket's partner, in both directions. */
function pairBrackets(tokens: readonly Token[]): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  tokens.forEach(({ kind, text }, i) => {
    if (kind !== 'punct') return;
    if (/^[([{]$/.test(text)) open.push(i);
    if (!/^[)\]}]$/.test(text)) return;
    const partner = open.pop();
    if (partner === undefined) return;
    pairs.set(partner, i);
    pairs.set(i, partner);
  });
  return pairs;
}
