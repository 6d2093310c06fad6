// Puts the steps of tables together into what one restore loads: a commit for each table, in an order in which a death
// between two commits lets no traffic pass by. Pure.
//
// A commit is one table's: the kernel takes all of it or nothing. Of several
// - those that add come first, in the order in which packets come to their tables: what a rule of nat needs in raw is there
//   then. Among them, those that write over a chain that is in use come behind the others: what it captured goes when what
//   others capture is there;
// - those that only take away come last, and in the opposite order: what captured before goes when the new capture is there,
//   and what it needed in raw goes after it.
// So a ruleset that captures in another table than the one before it must not write over the same chain in both of them.
import { emptyTables, holdsOwn, type Own, ownIn, type Tables } from "./own.ts";
import { plan, planFresh, planRemoval, planStale, type Step } from "./plan.ts";
import { type Ruleset, rulesOf, type TableName, tableNames } from "./table.ts";

/** The steps of one table, which the kernel takes as one: all or none. */
export type Commit = { readonly table: TableName; readonly steps: readonly Step[] };

/** Commits in their order, none of them empty. No commits: nothing to do. */
export type Transaction = readonly Commit[];

/**
 * For a netns that should hold nothing of ours: one restore without looking first. Where a chain of ours is there already its
 * table refuses, and the state can be looked at in peace.
 */
export function freshTransaction({ tables }: Ruleset): Transaction {
  return inOrder(
    tables.map((own) => ({ table: own.name, steps: planFresh(own) })),
    emptyTables,
  );
}

/**
 * From the tables as observed to the ruleset; empty when all is there already, to the letter. A table that holds nothing of
 * ours is written as a fresh one: it refuses to meet anything of ours.
 */
export function transactionTo({ tables, traffic }: Ruleset, found: Tables): Transaction {
  const commits = tables.flatMap((own): Commit[] => {
    const table = found[own.name];
    const isFree = !holdsOwn(ownIn(own), table);
    return [
      { table: own.name, steps: isFree ? planFresh(own) : plan(own, table, traffic) },
      { table: own.name, steps: planStale(own, table) },
    ];
  });
  return inOrder(commits, found);
}

/** From the tables as observed to tables without what is ours; empty when there is none. */
export function removalOf(own: Own, found: Tables): Transaction {
  return inOrder(
    own.map((names) => ({ table: names.name, steps: planRemoval(names, found[names.name]) })),
    found,
  );
}

/** True when one of the tables holds something of ours. */
export function holdsAny(own: Own, found: Tables): boolean {
  return own.some((names) => holdsOwn(names, found[names.name]));
}

/** The commit refuses to meet anything of ours: it begins with a chain that is made. */
export function isFresh({ steps }: Commit): boolean {
  return steps[0]?.do === "create-chain";
}

function inOrder(commits: readonly Commit[], found: Tables): Transaction {
  const isAdding = ({ steps }: Commit) => steps.some(adds);
  const isOver = (commit: Commit) => writesOver(commit, found);
  const adding = inTurn(commits.filter(isAdding), tableNames);
  const taking = commits.filter((commit) => !isAdding(commit) && commit.steps.length > 0);
  return joined([
    ...adding.filter((commit) => !isOver(commit)),
    ...adding.filter(isOver),
    ...inTurn(taking, tableNames.toReversed()),
  ]);
}

function inTurn(commits: readonly Commit[], names: readonly TableName[]): Commit[] {
  return names.flatMap((name) => commits.filter(({ table }) => table === name));
}

function adds(step: Step): boolean {
  return step.do === "create-chain" || step.do === "append" || step.do === "insert";
}

function writesOver({ table, steps }: Commit, found: Tables): boolean {
  return steps.some((step) => {
    return step.do === "reset-chain" && rulesOf(found[table], step.chain).length > 0;
  });
}

// Of one table in a row: one commit, so that there is no moment between what is new and what was before.
function joined(commits: readonly Commit[]): Commit[] {
  const found: { readonly table: TableName; readonly steps: Step[] }[] = [];
  for (const { table, steps } of commits) {
    const last = found.at(-1);
    if (last?.table === table) last.steps.push(...steps);
    else found.push({ table, steps: [...steps] });
  }
  return found;
}

/**
 * As much of a transaction as fits, where `sizeOf` says how long it is. Deletions that do not fit are left for the next one,
 * planned from what is there then, and with them the chains that they would set free.
 */
export function fitting(transaction: Transaction, longest: number, sizeOf: SizeOf): Transaction {
  if (sizeOf(transaction) <= longest) return transaction;
  let left = longest - sizeOf(withSteps(transaction, (step) => !isDeletion(step)));
  const kept = withSteps(transaction, (step) => {
    if (step.do === "delete-chain") return false;
    if (step.do !== "delete") return true;
    left -= step.rule.length + 1;
    return left >= 0;
  });
  return kept.filter(({ steps }) => steps.length > 0);
}

type SizeOf = (transaction: Transaction) => number;

function isDeletion(step: Step): boolean {
  return step.do === "delete" || step.do === "delete-chain";
}

function withSteps(transaction: Transaction, isKept: (step: Step) => boolean): Commit[] {
  return transaction.map(({ table, steps }) => ({ table, steps: steps.filter(isKept) }));
}
