// What all properties share: one seed for the whole run, and a part of its time for each. `npm run fuzz` sets both (run.ts);
// without it the run is short, and its seed is always the same.
import fc from "fast-check";

const { SLUICE_FUZZ_SEED = "1", SLUICE_FUZZ_SECONDS = "25" } = process.env;

/** Where the random numbers of every property begin. */
export const seed = Number(SLUICE_FUZZ_SEED);

/** How long the whole level may try, in seconds: what one property gets is a part of it. */
export const seconds = Number(SLUICE_FUZZ_SECONDS);

/** How often each property was tried is of interest where somebody asked for it. */
const isLong = process.env["SLUICE_FUZZ_SECONDS"] !== undefined;

/** A failing property goes on for so long, to find a shorter counterexample. */
const shrinkingMs = 20_000;

/** The longest that a test may take: its part of the time, the last run, and the search for a shorter counterexample. */
export const timeoutMs: number = seconds * 1_000 + 2 * shrinkingMs + 60_000;

/** A property's part of the time (0 to 1), and what is tried in any case, before anything random. */
export type Effort<Given> = { readonly part: number; readonly first?: readonly Given[] };

const underWay = new Set<Promise<void>>();

/** Work of an asynchronous property that puts away what it makes: when the time is up, its last run is waited for. */
export function toTheEnd<Given>(work: (given: Given) => Promise<void>) {
  return async (given: Given): Promise<void> => {
    const running = work(given);
    underWay.add(running);
    await running.finally(() => underWay.delete(running));
  };
}

/**
 * Tries a property.
 * @throws Error with seed, path and the shortest counterexample that was found.
 */
export async function holds<Given>(
  property: fc.IProperty<Given> | fc.IAsyncProperty<Given>,
  { part, first = [] }: Effort<Given>,
): Promise<void> {
  const whole = { seed, numRuns: 10_000_000, endOnFailure: true };
  if (first.length > 0)
    await fc.assert(property, { ...whole, examples: [...first], numRuns: first.length });
  const found = await within(part * seconds * 1_000, property, whole);
  if (found.counterexamplePath === null) {
    // No run at all would prove nothing: one is made, however busy the machine is.
    if (found.numRuns === 0) await fc.assert(property, { ...whole, numRuns: 1 });
    if (isLong) process.stdout.write(`${Math.max(1, found.numRuns)} runs\n`);
    return;
  }
  const again = { seed, path: found.counterexamplePath };
  const shortest = await within(shrinkingMs, property, again);
  throw new Error(fc.defaultReportMessage(shortest.failed ? shortest : found));
}

async function within<Given>(
  interruptAfterTimeLimit: number,
  property: fc.IProperty<Given> | fc.IAsyncProperty<Given>,
  parameters: fc.Parameters<Given>,
): Promise<fc.RunDetails<Given>> {
  const found = await fc.check(property, { ...parameters, interruptAfterTimeLimit });
  await Promise.allSettled(underWay);
  return found;
}
