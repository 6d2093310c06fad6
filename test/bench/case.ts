// A case: what is measured, and what comes before it each time.
import type { Job } from "./runner.ts";

/** One line of the results. */
export type Case = Label & {
  /** Makes ready, unmeasured, and says what to start; more than one job is started at once. */
  readonly prepare: () => readonly Job[];
  /** Another's program may not be able to do it: the case is left out then. */
  readonly mayFail: boolean;
  /** Each time of the rounds, or each so many. */
  readonly each: number;
};

export type Label = {
  readonly action: string;
  /** ipv4, dual, or "" where that makes no difference. */
  readonly families: string;
  readonly backend: string;
  readonly source: string;
  /** Who does it: sluice, bundle, init container, bare, or a peer. */
  readonly way: string;
};

/** Many take long: they are not in each round. */
export const crowdEach = 6;

/** How a case is named in messages and in the JSON. */
export function nameOf({ action, families, backend, source, way }: Label): string {
  return [way, action, families, backend, source].filter((word) => word !== "").join(" ");
}

/** ipv4 and ipv6 together are called dual. */
export function familiesLabel(families: readonly string[]): string {
  return families.length > 1 ? "dual" : families.join();
}
