// Waiting for what is bound to come: a runtime works on its own time.
import { setTimeout } from "node:timers/promises";

/** How long anything may take on a busy machine. */
const patienceMs = 60_000;

/** Waits until there is something to be seen, and gives it. `what` says what was missing when it does not come. */
export async function until<T>(
  look: () => Promise<T | undefined> | T | undefined,
  what: () => string,
): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > end) {
      throw new Error(`waited ${patienceMs / 1_000} s for what did not come: ${what()}`);
    }
    await setTimeout(100);
  }
}
