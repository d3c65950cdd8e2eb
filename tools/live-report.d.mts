export interface LiveRow {
  id: string;
  result: 'pass' | 'fail' | 'info';
  text: string;
}

export interface LiveReport {
  check: string;
  result: string;
  day: string;
  versions: { postbell: string; node: string; host: string; platform: string };
  rows: LiveRow[];
  limitations: string[];
}

export function namesServer(words: string): boolean;
export function namesHooks(words: string): boolean;

/** Why a session cannot be checked; undefined where it can. */
export function unfit(session: { bell: string; unattended: boolean }, channel: boolean): string | undefined;

/** The verdict and the rows of a message that was sent. */
export function judge(run: object): Pick<LiveReport, 'result' | 'rows'>;

/** The whole report. */
export function reportOf(of: object): LiveReport;
export function asText(report: LiveReport): string;
