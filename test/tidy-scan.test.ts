// The scanner under the conventions: what it finds, and what does not fool it.

import { describe, expect, it } from 'vitest';
import { functionsOf, importsOf, memberOf, tokenize } from '../tools/tidy-scan.ts';

describe('the scanner', () => {
  const specifiers = (text: string) =>
    importsOf(tokenize(text)).map(({ kind, specifier }) => `${kind} ${specifier}`);

  it('finds every form of import', () => {
    const text = `#!/usr/bin/env node
      import a, { b as c, type D } from "1"; import * as e from '2'; import '3'; import type F from '4';
      import type from '5'; export { g } from '6'; export type { H } from '7'; export type * from '8';
      type I = import('9').I; const j = require('10'); await import(\`11\`, { with: {} });
      import k from '12' with { type: 'json' };`;
    expect(specifiers(text).join(', ')).toEqual(
      [
        'static 1, static 2, static 3, types 4, static 5, static 6, types 7, types 8',
        'lazy 9, lazy 10, lazy 11, static 12',
      ].join(', '),
    );
  });

  it('is not fooled by comments, strings, templates and regular expressions', () => {
    const text = `// import '1';
      /* import '2'; */ const a = "import '3'"; const b = \`import '4' \${"}" + \`import '5'\`} import '6'\`;
      const c = /import '7'/; const d = e / 2; import.meta.url; f.import('8'); const g = [/['"\`/]/, h! / 2 / i];
      export const j = 1; import '9'; // it's`;
    expect(specifiers(text)).toEqual(['static 9']);
  });

  it('measures nested functions, each with all its lines', () => {
    const text = 'function a(\n  b: C,\n): D {\n  return e(() => {\n    f;\n  });\n}\n';
    expect(functionsOf(tokenize(text))).toEqual([
      { line: 1, lines: 7 },
      { line: 4, lines: 3 },
    ]);
  });

  it('reads members by every spelling', () => {
    const members = ['a.b', 'a?.b', "a['b']", "a?.['b']", 'a[b]', 'a + b', '"a".b', 'a?.5:b'];
    const found = members.map((text) => memberOf(tokenize(text), 0));
    expect(found).toEqual(['b', 'b', 'b', 'b', undefined, undefined, 'b', undefined]);
  });
});
