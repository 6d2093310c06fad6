// The numbers behind a table: pure.

/** What one process, or a crowd of them, took. */
export type Sample = {
  /** From its start to its end. */
  readonly wallMs: number;
  /** User and system time of it and all of its children. */
  readonly cpuMs: number;
  /** The largest process of them. */
  readonly rssMb: number;
};

export type Summary = {
  readonly runs: number;
  readonly wallMs: Spread;
  readonly cpuMs: Spread;
  /** The largest of all runs. */
  readonly rssMb: number;
};

export type Spread = { readonly min: number; readonly median: number; readonly p95: number };

/** Sums up the samples of one case; undefined without any. */
export function summarize(samples: readonly Sample[]): Summary | undefined {
  if (samples.length === 0) return undefined;
  return {
    runs: samples.length,
    wallMs: spread(samples.map(({ wallMs }) => wallMs)),
    cpuMs: spread(samples.map(({ cpuMs }) => cpuMs)),
    rssMb: round(Math.max(...samples.map(({ rssMb }) => rssMb))),
  };
}

/** The least, the middle, and what 19 of 20 stay below. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    min: round(sorted[0] ?? 0),
    median: round(quantile(sorted, 0.5)),
    p95: round(quantile(sorted, 0.95)),
  };
}

// Between two values, in proportion: the median of an even number of runs is the mean of the middle two.
function quantile(sorted: readonly number[], part: number): number {
  const at = (sorted.length - 1) * part;
  const [low = 0, high = low] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

/** A ratio of two times, with two digits behind the point. */
export function ratio(time: number, base: number): number {
  return Math.round((time / base) * 100) / 100;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
