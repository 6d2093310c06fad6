// Time, as the commands are given it.
export type Clock = {
  /** Milliseconds since the process began; they only go forward. */
  readonly monotonicMs: () => number;
  /** The time of day, in milliseconds of the epoch. */
  readonly epochMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
};
