// Whether a claimed name could be taken for a petname. A mark too many costs a second look, a mark too few a person's trust in the
// wrong key: so letters that look alike in some common font count as one, even where that merges two honest names.

import { foldPetname } from './petname.ts';

/** Capital and small letters of other scripts that are drawn as the Latin one. Case counts: eta is drawn as n, its capital as H. */
const drawnAs: readonly (readonly [latin: string, others: string])[] = [
  ['a', 'АаΑαɑ'],
  ['b', 'ВвЬьΒβ'],
  ['c', 'СсϹϲ'],
  ['d', 'Ԁԁđð'],
  ['e', 'ЕеΕεє'],
  ['g', 'ɡԌԍ'],
  ['h', 'НнΗһҺ'],
  ['i', 'ІіΙιıɩ'],
  ['j', 'ЈјϳͿ'],
  ['k', 'КкΚκ'],
  ['l', 'ӀӏłŁ'],
  ['m', 'МмΜ'],
  ['n', 'Νηпո'],
  ['o', 'ОоΟοσøØօ'],
  ['p', 'РрΡρ'],
  ['q', 'Ԛԛ'],
  ['r', 'гГ'],
  ['s', 'Ѕѕ'],
  ['t', 'ТтΤτ'],
  ['u', 'υµμս'],
  ['v', 'ѴѵνΝ'],
  ['w', 'Ԝԝωѡ'],
  ['x', 'ХхΧχ'],
  ['y', 'УуΥγүҮ'],
  ['z', 'Ζ'],
];

/** Within Latin, after case is gone: digits and signs for letters, and i for l, whose capital is drawn as one. */
const standsFor: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'l',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '@': 'a',
  $: 's',
  '!': 'l',
  '|': 'l',
  i: 'l',
};

const latinOf = new Map(drawnAs.flatMap(([latin, others]) => Array.from(others, (other) => [other, latin])));

const pairs: readonly (readonly [RegExp, string])[] = [
  [/rn/g, 'm'],
  [/vv/g, 'w'],
];

/** The name without marks, case and separators, look-alikes as one letter. Empty where nothing of it is a letter or digit. */
function skeleton(text: string): string {
  const bare = text.normalize('NFKD').replace(/\p{M}/gu, '');
  const latin = Array.from(bare, (letter) => latinOf.get(letter) ?? letter).join('');
  const plain = Array.from(foldPetname(latin), (letter) => standsFor[letter] ?? letter).join('');
  const letters = plain.replace(/[^\p{L}\p{N}]/gu, '');
  return pairs.reduce((name, [two, one]) => name.replace(two, one), letters);
}

/** Whether the claimed name equals the petname, or a person could read it so. */
export function resembles(claimed: string, petname: string): boolean {
  if (foldPetname(claimed) === foldPetname(petname)) return true;
  const left = skeleton(claimed);
  return left !== '' && left === skeleton(petname);
}
