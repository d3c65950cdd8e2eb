// Rows that are looked at only when asked for by a variable: they start a process of their own, or speak to the router.

import type { Finding } from '../../protocol/doctor.ts';
import type { DoctorFacts, ProbeFacts } from './facts.ts';

export function probeCapability({ probes, packageDirectory }: DoctorFacts): Finding {
  return probed(
    probes.capability,
    'POSTBELL_DOCTOR_PROBE_CAPABILITY',
    `install Postbell again: ${packageDirectory}`,
  );
}

export function probeRouter({ probes }: DoctorFacts): Finding {
  return probed(
    probes.router,
    'POSTBELL_DOCTOR_PROBE_ROUTER',
    'start a session or postbell router; see the row router-socket',
  );
}

function probed(probe: ProbeFacts | undefined, variable: string, hint: string): Finding {
  if (probe === undefined) return { level: 'info', text: 'not verified', hint: `set ${variable}=1` };
  return probe.passed ? { level: 'pass', text: probe.text } : { level: 'fail', text: probe.text, hint };
}
