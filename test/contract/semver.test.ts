// Which of two versions is older.

import { describe, expect, it } from 'vitest';
import { compareVersions, isVersion } from '../../src/protocol/semver.ts';
import { isOutdated } from '../../src/sessions/router-run.ts';

/** Each older than the one after it; the pre-releases are those of Semantic Versioning 2.0.0, section 11. */
const rising = [
  '0.0.9',
  '0.1.0',
  '0.1.9',
  '0.1.10',
  '0.2.0-rc.1',
  '0.2.0',
  '1.0.0-0',
  '1.0.0-2',
  '1.0.0-11',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0-rc.1.0',
  '1.0.0',
  '1.0.1',
  '2.0.0',
  '10.0.0',
  '9007199254740993.0.0',
  '9007199254740994.0.0',
];

const unreadable: unknown[] = [
  '',
  '1',
  '1.0',
  '1.0.0.0',
  'v1.0.0',
  '01.0.0',
  '1.00.0',
  '1.0.0-',
  '1.0.0-01',
  '1.0.0-a..b',
  '1.0.0-é',
  '1.0.0+',
  ' 1.0.0',
  '1.0.0\n',
  'latest',
  'unknown',
  undefined,
  null,
  1,
  ['1.0.0'],
];

describe('[SES-084] two versions', () => {
  it('compare by semantic versioning, pre-release included', () => {
    for (const [i, left] of rising.entries())
      for (const [j, right] of rising.entries()) {
        const order = Math.sign(compareVersions(left, right) as number);
        expect([left, right, order]).toEqual([left, right, Math.sign(i - j)]);
        expect([left, right, isOutdated(left, right)]).toEqual([left, right, i < j]);
      }
    expect(compareVersions('1.0.0+linux', '1.0.0+mac.7')).toBe(0);
    expect(compareVersions('1.0.0-rc.1+5', '1.0.0-rc.1')).toBe(0);
  });

  it('of which one is unreadable say nothing, as if it were not reported', () => {
    for (const text of unreadable) {
      expect([text, isVersion(text)]).toEqual([text, false]);
      for (const [left, right] of [
        [text, '1.0.0'],
        ['1.0.0', text],
      ]) {
        expect(compareVersions(left as string, right as string)).toBeUndefined();
        expect(isOutdated(left as string, right as string)).toBe(false);
      }
    }
    expect(rising.every(isVersion)).toBe(true);
  });
});
