// Takes own chains, and the jumps into them, out of a netns; in steps where there are more jumps than fit into one load.
// What counts is what is read back. Edge: works through the client.
import { CniError, errorCode } from "../../cni/error.ts";
import { printable } from "../../text/printable.ts";
import type { Outcome } from "../iptables/client.ts";
import { readFailure } from "../iptables/failure.ts";
import { fitting, holdersOf, planRemoval, type Transaction } from "../plan.ts";
import { longestRestoreBytes } from "../restore.ts";
import type { Family, Own, Table } from "../table.ts";
import { readTable, restoreJob } from "./converge.ts";
import type { Session } from "./left-out.ts";
import { removeBlindly } from "./remove-blindly.ts";

/** Tries before giving up on a table that others keep changing. */
const triesMax = 4;

/** What came of a removal. `left` and `husks` hold sentences; nothing of ours is there where both are empty. */
export type Removal = {
  /** The families that were written to. */
  readonly written: readonly Family[];
  /** What may still act on traffic, or is not known. */
  readonly left: readonly string[];
  /** Chains that cannot go because a rule of someone else's leads into them. They are empty, and let all traffic pass. */
  readonly husks: readonly string[];
};

/** A family's table as it was read. */
export type Seen = { readonly family: Family; readonly table: Table };

/** One family on its way to nothing of ours. */
type Removing = {
  readonly family: Family;
  table: Table;
  transaction: Transaction;
  written: boolean;
};

/**
 * Looks, and removes what is there (see removeSeen).
 * @throws CniError 11 when a table could not be read or changed.
 */
export async function removeOwn(
  session: Session,
  wanted: readonly Family[],
  own: Own,
): Promise<Removal> {
  const { client, place, choice, remainingMs } = session;
  const looks = wanted.map((family) => restoreJob(choice, family, []));
  const outcomes = await client(place, looks, remainingMs());
  const seen = outcomes.map((outcome) => ({
    family: outcome.job.family,
    table: tableIn(outcome),
  }));
  return await removeSeen(session, seen, own);
}

/**
 * Removes from tables that were read just now, each family in as few transactions as its jumps fit into. Success is what is
 * read back; of a table that cannot be shown, what the kernel lets go of.
 * @throws CniError 11 when a table could not be read or changed.
 */
export async function removeSeen(
  session: Session,
  seen: readonly Seen[],
  own: Own,
): Promise<Removal> {
  const { chains } = own;
  const all = seen.map(({ family, table }): Removing => {
    return { family, table, transaction: planFor(table, chains), written: false };
  });
  for (let tries = 0; all.some(isOpen); ) {
    const failed = await removeOnce(session, all.filter(isOpen), chains);
    if (failed === undefined) continue;
    tries += 1;
    if (tries === triesMax) throw notRemoved(failed, failed.restoreStatus);
    await session.sleep(Math.random() * 100);
  }
  const rests: Rest[] = [];
  for (const removing of all) rests.push(await restOf(session, removing, own));
  return {
    written: all.filter(({ written }) => written).map(({ family }) => family),
    left: rests.flatMap(({ left }) => left),
    husks: rests.flatMap(({ husks }) => husks),
  };
}

function planFor(table: Table, chains: readonly string[]): Transaction {
  if (table.unverifiable !== undefined) return [];
  return fitting(planRemoval(chains, table), longestRestoreBytes);
}

function isOpen({ transaction }: Removing): boolean {
  return transaction.length > 0;
}

/** Loads one step of each, and plans the next from what is there then. Gives one that came to nothing. */
async function removeOnce(
  session: Session,
  open: readonly Removing[],
  chains: readonly string[],
): Promise<Outcome | undefined> {
  const { client, place, choice, remainingMs } = session;
  const jobs = open.map(({ family, transaction }) => restoreJob(choice, family, transaction));
  const outcomes = await client(place, jobs, remainingMs());
  let failed: Outcome | undefined;
  for (const [i, removing] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome === undefined) continue;
    const before = removing.table;
    removing.table = tableIn(outcome);
    removing.transaction = planFor(removing.table, chains);
    removing.written ||= outcome.restoreStatus === 0;
    // Loaded, and as much to do as before: somebody puts it back.
    const isFruitless = isOpen(removing) && sizeOf(removing.table) >= sizeOf(before);
    if (outcome.restoreStatus !== 0 || isFruitless) failed = outcome;
  }
  return failed;
}

function sizeOf({ chains }: Table): number {
  return [...chains.values()].reduce((sum, rules) => sum + 1 + rules.length, 0);
}

type Rest = Pick<Removal, "left" | "husks">;

async function restOf(session: Session, removing: Removing, own: Own): Promise<Rest> {
  const { family, table } = removing;
  if (table.unverifiable === undefined) return { left: [], husks: husksIn(removing, own.chains) };
  const kept = await removeBlindly(session, { family, table }, own);
  removing.written ||= kept.length < own.chains.length;
  const why = `the ${family} nat table cannot be verified: ${printable(table.unverifiable)}`;
  const left = kept.map(({ chain, isEmpty }) => {
    return isEmpty ? `${chain} is left, empty, and ${why}` : `${chain} may be there, and ${why}`;
  });
  return { left, husks: [] };
}

function husksIn({ family, table }: Removing, chains: readonly string[]): string[] {
  return chains
    .filter((chain) => table.chains.has(chain))
    .flatMap((chain) =>
      holdersOf(chain, table, chains).map(
        (rule) => `${chain} (${family}) is left, empty: ${printable(rule)} leads into it`,
      ),
    );
}

function tableIn(outcome: Outcome): Table {
  const table = readTable(outcome);
  if (table instanceof Error) throw notRemoved(outcome, outcome.saveStatus);
  return table;
}

function notRemoved({ job, stderr }: Outcome, status: number): CniError {
  const { said, advice } = readFailure(status, stderr);
  return new CniError(
    errorCode.tryAgainLater,
    `our rules could not be taken out by ${job.tools.restore} (${job.backend}, ${job.family}, table nat): ${said}`,
    { details: advice || "see the tool's message" },
  );
}
