// Time, as the commands are given it.
export type Clock = {
  /** Milliseconds since the process began; they only go forward. */
  readonly monotonicMs: () => number;
  /** The time of day, in milliseconds of the epoch. */
  readonly epochMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};

/** The clock's milliseconds. Not from `performance`: that loads ten modules of Node's, which each start then reads. */
export function monotonicMs(): number {
  return process.uptime() * 1_000;
}
