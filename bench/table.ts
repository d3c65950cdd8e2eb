// The report for people: ratios first, absolutes in brackets, a missed target as missed.

import type { Conditions } from './conditions.ts';
import { figure, type Metric, type Outcome } from './metric.ts';

export type Verdict = 'stretch' | 'met' | 'missed' | 'counted';

export function verdict(metric: Metric): Verdict {
  const value = figure(metric);
  if (metric.target === undefined) return 'counted';
  const reaches = (bound: number): boolean => (metric.atLeast ? value >= bound : value <= bound);
  if (!reaches(metric.target)) return 'missed';
  return metric.stretch !== undefined && reaches(metric.stretch) ? 'stretch' : 'met';
}

export function table(outcomes: readonly Outcome[]): string {
  const rows = [
    ['#', 'metric', 'figure', 'target', 'stretch', 'verdict', 'measured / yardstick'],
    ...outcomes.map(rowOf),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function rowOf(outcome: Outcome): string[] {
  if ('why' in outcome) return [outcome.id, outcome.what, '-', '-', '-', 'skipped', outcome.why];
  const { id, what, unit, measured, yardstick, target, stretch, note } = outcome;
  const sign = yardstick === undefined ? ` ${unit}` : 'x';
  const limit = (value: number | undefined): string => (value === undefined ? '-' : `${value}${sign}`);
  const absolute =
    yardstick === undefined
      ? ''
      : `[${measured.toFixed(2)} / ${yardstick.value.toFixed(2)} ${unit}: ${yardstick.what}]`;
  return [
    id,
    what,
    `${figure(outcome).toFixed(2)}${sign}`,
    limit(target),
    limit(stretch),
    verdict(outcome),
    [absolute, note ?? ''].filter((text) => text !== '').join(' '),
  ];
}

export function head(conditions: Conditions): string {
  return Object.entries(conditions)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}
