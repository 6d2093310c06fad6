// Takes own chains, and the jumps into them, out of a netns. Edge: works through the client.
import { CniError, errorCode } from "../cni/error.ts";
import type { Outcome } from "./client.ts";
import { readTable, restoreJob } from "./converge.ts";
import { readFailure } from "./failure.ts";
import type { Session } from "./left-out.ts";
import { planRemoval } from "./plan.ts";
import type { Family } from "./table.ts";

/** Tries before giving up on a table that others keep changing. */
const triesMax = 4;

/**
 * Looks, then removes in one transaction a family. Chains that a foreign chain leads into stay behind, empty.
 * @returns the families that were written to.
 * @throws CniError 11 when a table could not be read or changed.
 */
export async function removeOwn(
  session: Session,
  wanted: readonly Family[],
  chains: readonly string[],
): Promise<Family[]> {
  for (let tries = 1; ; tries++) {
    const written = await removeOnce(session, wanted, chains);
    const failed = written.find(({ restoreStatus }) => restoreStatus !== 0);
    if (failed === undefined) return written.map(({ job }) => job.family);
    if (tries === triesMax) throw notRemoved(failed, failed.restoreStatus);
    await session.sleep(Math.random() * 100);
  }
}

async function removeOnce(
  session: Session,
  wanted: readonly Family[],
  chains: readonly string[],
): Promise<Outcome[]> {
  const { client, place, choice, remainingMs } = session;
  const looks = wanted.map((family) => restoreJob(choice, family, []));
  const outcomes = await client(place, looks, remainingMs());
  const jobs = outcomes.flatMap((outcome) => {
    const table = readTable(outcome);
    if (table instanceof Error) throw notRemoved(outcome, outcome.saveStatus);
    const transaction = planRemoval(chains, table);
    return transaction.length === 0 ? [] : [restoreJob(choice, outcome.job.family, transaction)];
  });
  return jobs.length === 0 ? [] : await client(place, jobs, remainingMs());
}

function notRemoved({ job, stderr }: Outcome, status: number): CniError {
  const { said, advice } = readFailure(status, stderr);
  return new CniError(
    errorCode.tryAgainLater,
    `our rules could not be taken out by ${job.tools.restore} (${job.backend}, ${job.family}, table nat): ${said}`,
    { details: advice || "see the tool's message" },
  );
}
