// Takes own chains, and the jumps into them, out of a netns; in steps where there are more jumps than fit into one load.
// What counts is what is read back. Edge: works through the client.
import { Fault } from "../../fault.ts";
import { printable } from "../../text/printable.ts";
import { readFailure } from "../iptables/failure.ts";
import type { Outcome } from "../iptables/job.ts";
import { actingIn, type Own } from "../own.ts";
import { holdersOf } from "../plan.ts";
import { loadable } from "../restore.ts";
import type { Family } from "../table.ts";
import { removalOf, type Transaction } from "../transaction.ts";
import { jobFor } from "./job.ts";
import type { Session } from "./left-out.ts";
import { readTables, type Shown, shownIn } from "./readout.ts";
import { type Kept, removeBlindly } from "./remove-blindly.ts";

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

/** A family's tables as they were read. */
export type Seen = { readonly family: Family; readonly shown: Shown };

/** One family on its way to nothing of ours. */
type Removing = {
  readonly family: Family;
  readonly own: Own;
  shown: Shown;
  transaction: Transaction;
  written: boolean;
};

/**
 * Looks, and removes what is there (see removeSeen).
 * @throws Fault try-again when a table could not be read or changed.
 */
export async function removeOwn(
  session: Session,
  wanted: readonly Family[],
  own: Own,
): Promise<Removal> {
  const { client, place, choice, remainingMs } = session;
  const looks = wanted.map((family) => jobFor(choice, { family, tables: own }));
  const outcomes = await client(place, looks, remainingMs());
  const seen = outcomes.map((outcome) => ({
    family: outcome.job.family,
    shown: shownBy(outcome, own),
  }));
  return await removeSeen(session, seen, own);
}

/**
 * Removes from tables that were read just now, each family in as few transactions as its jumps fit into. Success is what is
 * read back; of a table that cannot be shown, what the kernel lets go of.
 * @throws Fault try-again when a table could not be read or changed.
 */
export async function removeSeen(
  session: Session,
  seen: readonly Seen[],
  own: Own,
): Promise<Removal> {
  const all = seen.map(({ family, shown }): Removing => {
    return { family, own, shown, transaction: planFor(shown, own), written: false };
  });
  for (let tries = 0; all.some(isOpen); ) {
    const failed = await removeOnce(session, all.filter(isOpen));
    if (failed === undefined) continue;
    tries += 1;
    if (tries === triesMax) throw notRemoved(failed, failed.restoreStatus);
    await session.sleep(Math.random() * 100);
  }
  const rests: Rest[] = [];
  for (const removing of all) rests.push(await restOf(session, removing));
  return {
    written: all.filter(({ written }) => written).map(({ family }) => family),
    left: rests.flatMap(({ left }) => left),
    husks: rests.flatMap(({ husks }) => husks),
  };
}

function planFor({ tables, unverifiable }: Shown, own: Own): Transaction {
  return unverifiable === undefined ? loadable(removalOf(own, tables)) : [];
}

function isOpen({ transaction }: Removing): boolean {
  return transaction.length > 0;
}

/** Loads one step of each, and plans the next from what is there then. Gives one that came to nothing. */
async function removeOnce(
  session: Session,
  open: readonly Removing[],
): Promise<Outcome | undefined> {
  const { client, place, choice, remainingMs } = session;
  const jobs = open.map(({ family, own, transaction }) => {
    return jobFor(choice, { family, tables: own }, transaction);
  });
  const outcomes = await client(place, jobs, remainingMs());
  let failed: Outcome | undefined;
  for (const [i, removing] of open.entries()) {
    const outcome = outcomes[i];
    if (outcome === undefined) continue;
    const { shown: before, own } = removing;
    removing.shown = shownBy(outcome, own);
    removing.transaction = planFor(removing.shown, own);
    removing.written ||= outcome.restoreStatus === 0;
    // Loaded, and as much to do as before: somebody puts it back.
    const isFruitless = isOpen(removing) && sizeOf(removing.shown, own) >= sizeOf(before, own);
    if (outcome.restoreStatus !== 0 || isFruitless) failed = outcome;
  }
  return failed;
}

function sizeOf({ tables }: Shown, own: Own): number {
  const lengths = own.flatMap(({ name }) => [...tables[name].chains.values()].map(lengthOf));
  return lengths.reduce((sum, length) => sum + 1 + length, 0);
}

function lengthOf({ length }: readonly unknown[]): number {
  return length;
}

type Rest = Pick<Removal, "left" | "husks">;

async function restOf(session: Session, removing: Removing): Promise<Rest> {
  const { family, own, shown } = removing;
  if (shown.unverifiable === undefined) return { left: [], husks: husksIn(removing) };
  const left: string[] = [];
  // What captures goes before what it needs.
  for (const names of own.toReversed()) {
    const table = shown.tables[names.name];
    const kept = await removeBlindly(session, { family, table }, names);
    removing.written ||= kept.length < names.chains.length + actingIn(names).length;
    const why = `the ${family} ${names.name} table cannot be verified: ${printable(shown.unverifiable)}`;
    left.push(...kept.map((one) => `${sentenceOf(one)}, and ${why}`));
  }
  return { left, husks: [] };
}

function sentenceOf({ what, isEmpty }: Kept): string {
  return isEmpty ? `${what} is left, empty` : `${what} may be there`;
}

function husksIn({ family, own, shown }: Removing): string[] {
  return own.flatMap((names) => {
    const table = shown.tables[names.name];
    return names.chains
      .filter((chain) => table.chains.has(chain))
      .flatMap((chain) =>
        holdersOf(chain, table, names).map(
          (rule) => `${chain} (${family}) is left, empty: ${printable(rule)} leads into it`,
        ),
      );
  });
}

function shownBy(outcome: Outcome, own: Own): Shown {
  const shown = shownIn(readTables(outcome), own);
  if (shown instanceof Error) throw notRemoved(outcome, outcome.saveStatus);
  return shown;
}

function notRemoved({ job, stderr }: Outcome, status: number): Fault {
  const { said, advice } = readFailure(status, stderr);
  return new Fault(
    "try-again",
    `our rules could not be taken out by ${job.tools.restore} (${job.backend}, ${job.family}, table ${job.table ?? "nat"}): ${said}`,
    { details: advice || "see the tool's message" },
  );
}
