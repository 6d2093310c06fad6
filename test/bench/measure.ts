// Runs all cases in turn, round by round, so that a busy moment of the machine is everybody's. Edge.
import { type Case, nameOf } from "./case.ts";
import { type Run, run } from "./runner.ts";
import type { Sample } from "./stats.ts";

export type Measured = { readonly case: Case; readonly samples: readonly Sample[] };

export type Course = {
  readonly runs: number;
  readonly tell: (line: string) => void;
  /** Called after each round, before anything of the next is made. */
  readonly roundDone: () => void;
};

type Entry = { readonly case: Case; readonly samples: Sample[]; failed: boolean };

/**
 * Measures each case `runs` times, the crowded ones less often.
 * @throws Error when one of our own does not end well: a benchmark of failures says nothing.
 */
export function measure(cases: readonly Case[], course: Course): Measured[] {
  const { runs, tell, roundDone } = course;
  const entries = cases.map((entry): Entry => ({ case: entry, samples: [], failed: false }));
  // One round that does not count: files are read into memory, and netns that stay are made.
  for (let round = 0; round <= runs; round++) {
    tell(round === 0 ? "warming up" : `round ${round} of ${runs}`);
    for (const entry of inTurn(entries, round)) measureOne(entry, round, course);
    roundDone();
  }
  return entries.filter(({ failed }) => !failed);
}

// Each round begins with another, so that nobody always comes behind the same.
function inTurn(entries: readonly Entry[], round: number): Entry[] {
  const first = (round * 7) % Math.max(1, entries.length);
  const ordered = [...entries.slice(first), ...entries.slice(0, first)];
  return ordered.filter((entry) => !entry.failed && isDue(entry.case, round));
}

function isDue({ each }: Case, round: number): boolean {
  return round === 0 || round % each === 1 % each;
}

function measureOne(entry: Entry, round: number, { tell }: Course): void {
  const done = run(entry.case.prepare());
  const bad = done.processes.find(({ exitStatus }) => exitStatus !== 0);
  if (bad !== undefined) {
    const problem = `${nameOf(entry.case)} ended with status ${bad.exitStatus}`;
    if (!entry.case.mayFail) throw new Error(problem);
    tell(`${problem}: left out`);
    entry.failed = true;
  }
  if (round > 0) entry.samples.push(sampleOf(done));
}

function sampleOf({ wallMs, processes }: Run): Sample {
  const [only, other] = processes;
  if (only !== undefined && other === undefined) return only;
  return {
    wallMs,
    cpuMs: processes.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    rssMb: Math.max(...processes.map(({ rssMb }) => rssMb)),
  };
}
