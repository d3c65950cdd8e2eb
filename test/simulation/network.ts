import type { SimulatedSocket } from './net.ts';
import type { Process } from './process.ts';

/** What the simulated sockets need of the world. */
export interface Network {
  server: { owner: Process; accept(socket: SimulatedSocket): void } | undefined;
  processAt(path: string): Process;
  later(owner: Process, label: string, ms: number, run: () => void): void;
  delayMs(): number;
  /** What really goes out for one write. */
  onWrite(text: string): string[];
}
