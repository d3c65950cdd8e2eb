// The index of the vectors: what the specification prints is in the suite, and what it says is refused has its vectors.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { refusedKeys, smallOrderPoints } from '../vectors/keys.ts';
import { vectors } from '../vectors/postbell-1.ts';

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

describe('the vectors', () => {
  it('[PEER-107] of the section are all in the suite, with the refusal vectors of sections 1 and 9', () => {
    const page = textOf('../../docs/spec/peers.md');
    const section = page.slice(page.indexOf('## 10. Test vectors'), page.indexOf('## 11. Threats'));
    // Whatever is long enough to be a value: keys, hashes, signatures, bytes, fingerprints, the code.
    const printed = [...section.matchAll(/`([^`\n]*)`/g)].map(([, value]) => value as string);
    const values = printed.filter((value) => value.length >= 12 && /^[\w -]+$/.test(value));
    expect(values.length).toBe(25);
    const suite = textOf('../vectors/postbell-1.ts');
    expect(values.filter((value) => !suite.includes(value))).toEqual([]);
    expect(vectors.map(({ id }) => id)).toEqual([...section.matchAll(/^\| (P\d) \|/gm)].map(([, id]) => id));

    const refused = ['refused-records.json', 'refused-items.json'].flatMap(
      (name) => JSON.parse(textOf(`../vectors/${name}`)) as { row: string }[],
    );
    const rows = new Set(refused.map(({ row }) => row));
    const asked = ['PEER-007', 'PEER-087', 'PEER-088', 'PEER-089', 'PEER-090'];
    expect(
      [...asked, 'PEER-092', 'PEER-096', 'PEER-097', 'PEER-098'].filter((row) => !rows.has(row)),
    ).toEqual([]);
    // Of section 1 the keys; its texts and signatures are made in identity.test.ts from these.
    expect(smallOrderPoints.length).toBe(14);
    expect(refusedKeys.length).toBeGreaterThan(5);
    const smallOrder = page.slice(page.indexOf('| PEER-006 |'), page.indexOf('| PEER-007 |'));
    const whole = [...smallOrder.matchAll(/`([0-9a-f]{64})`/g)].map(([, point]) => point as string);
    expect(whole.length).toBe(2);
    for (const point of whole) expect(smallOrderPoints).toContain(point);
  });

  it('of the relay page are in the suite', () => {
    const page = textOf('../../docs/spec/relay.md');
    const vector = page.slice(page.indexOf('Vector: key B settles'), page.indexOf('## 4.'));
    const suite = textOf('../vectors/postbell-1.ts');
    const lines = /```\n([\s\S]*?)\n```/.exec(vector)?.[1]?.split('\n') ?? [];
    expect(lines.length).toBe(6);
    for (const line of lines) expect(suite).toContain(`'${line}'`);
    const values = [...vector.replaceAll('```', '').matchAll(/`([^`\n]*)`/g)].map(
      ([, value]) => value as string,
    );
    expect(values.length).toBe(5);
    for (const value of values.filter((one) => !one.startsWith('{'))) expect(suite).toContain(value);
  });
});
