// Takes own chains, and the jumps into them, out of a netns. Edge: works through the client.
import { readTable, restoreJob, type Session } from "./converge.ts";
import { readFailure } from "./failure.ts";
import { planRemoval } from "./plan.ts";
import type { Family } from "./table.ts";

/**
 * Looks, then removes in one transaction a family. Chains that a foreign chain leads into stay behind, empty.
 * @returns the families that were written to.
 * @throws Error with the tool's words when a table could not be read or changed.
 */
export async function removeOwn(
  session: Session,
  wanted: readonly Family[],
  chains: readonly string[],
): Promise<Family[]> {
  const { client, place, choice, remainingMs } = session;
  const looks = wanted.map((family) => restoreJob(choice, family, []));
  const outcomes = await client(place, looks, remainingMs());
  const jobs = outcomes.flatMap((outcome) => {
    const table = readTable(outcome);
    if (table instanceof Error) throw table;
    const transaction = planRemoval(chains, table);
    return transaction.length === 0 ? [] : [restoreJob(choice, outcome.job.family, transaction)];
  });
  if (jobs.length === 0) return [];
  const written = await client(place, jobs, remainingMs());
  const failed = written.find(({ restoreStatus }) => restoreStatus !== 0);
  if (failed !== undefined) throw new Error(readFailure(failed.restoreStatus, failed.stderr).said);
  return written.map(({ job }) => job.family);
}
