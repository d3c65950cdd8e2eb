import type { LiveReport } from './live-report.mjs';

/** The verdict and a row for each stage; `seen` holds what each stage left. */
export function judgeCodex(seen: object, stopped?: string): Pick<LiveReport, 'result' | 'rows'>;

/** The whole report. */
export function reportOfCodex(of: object): LiveReport;
